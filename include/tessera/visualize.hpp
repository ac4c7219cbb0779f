/// @file
/// Pictures of shardings. They need no data and no communication, work on abstract meshes of any size, and
/// are the same on every rank.
#pragma once
#include <optional>
#include <source_location>
#include <string>

#include <tessera/mesh.hpp>
#include <tessera/shape.hpp>
#include <tessera/sharding.hpp>

namespace tessera::debug {

/// Options of pictures.
struct VisualizeOptions {
  /// Coloured areas instead of boxes, if the output is a terminal that can show them.
  bool use_color = true;
  double scale = 1.0;  ///< the first dimension is drawn 10 * scale lines high
  int min_width = 9;   ///< width of one block, in characters
  int max_width = 80;  ///< width of the picture, in characters
  /// Whether the text goes to a colour terminal. Unset: detected from the destination of standard output
  /// (also through mpirun), TERM and NO_COLOR.
  std::optional<bool> is_terminal = std::nullopt;
};

/// One cell per distinct block, with the devices that hold it. If an array of one or two dims is split evenly
/// and the picture fits max_width, the text equals that of jax.debug.visualize_sharding. Other pictures are
/// tessera's own. Uneven blocks are drawn in proportion, with each block's size. An array without dims is one
/// cell; of three or more dims those that are split are drawn, at most two per panel, and the first line
/// names them. If the picture is too wide, padding is removed first, then "0,1,2,3" becomes "0-3", then the
/// columns continue below, under a line that gives their position. Of more than 256 blocks the first and last
/// ones of each direction are drawn, and a line counts those left out. Neighbouring blocks never have the
/// same colour. ArgumentError unless 0 < scale <= 1000, min_width >= 1 and 20 <= max_width <= 10000.
/// ShardingError if the array cannot have the sharding.
std::string visualize_sharding(const Shape&, const Sharding&, VisualizeOptions = {},
                               std::source_location where = std::source_location::current());

/// The coloured form as one <pre> element with inline styles, without a trailing newline, as JAX displays it
/// in a notebook.
std::string sharding_html(const Shape&, const Sharding&,
                          std::source_location where = std::source_location::current());

/// A stand-alone SVG 1.1 document: shape, spec and mesh as title, index ticks, blocks in proportion, and a
/// legend of the blocks.
std::string sharding_svg(const Shape&, const Sharding&,
                         std::source_location where = std::source_location::current());

/// The devices of a mesh as a text grid under its axis names: the last axis across, the one before it down,
/// one panel for each position along the others.
std::string mesh_picture(const Mesh&);

}  // namespace tessera::debug
