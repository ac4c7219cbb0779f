/// @file
/// Pictures of data: images, curves, histograms, and pictures in characters.
///
/// **Collective** over all ranks: arrays are computed. Each rank reduces its own block to what the picture
/// can show, and rank 0 alone gets that and writes: of an array of any size at most the picture's pixels
/// travel, and nobody holds it whole. A path ends in .svg or .png, as each function says.
///
/// **Errors**, on every rank with the same text: ShapeError for a number of dimensions that cannot be drawn,
/// DtypeError for complex numbers (take abs, real or angle), ArgumentError for another ending, an unknown
/// colormap, or options that make no sense, IoError where rank 0 cannot write.
#pragma once
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include <tessera/array.hpp>

namespace tessera::viz {

/// The names of the colormaps: viridis, magma, inferno, plasma, gray, coolwarm.
std::vector<std::string> colormaps();

/// Options of image.
struct ImageOptions {
  std::string colormap = "viridis";  ///< one of colormaps()
  std::optional<double> vmin = {};   ///< what the first colour stands for; the least element unless given
  std::optional<double> vmax = {};   ///< what the last colour stands for; the largest element unless given
  int max_pixels = 1024;             ///< of either side: a longer one is averaged down to that
  int enlarge = 1;                   ///< pixels per element and direction
  std::string title = "";            ///< in .svg, as all that follows
  std::string x_label = "";          ///< below
  std::string y_label = "";          ///< at the left
};
/// A 2-D array as a picture, row 0 above, an element a pixel. A .png is the pixels alone; an .svg has axes
/// with the indices, and the scale of colours. NaN is left transparent. Collective over all ranks.
void image(const std::string& path, const Operand& x, ImageOptions options = {});

/// A curve of plot: y over x, or over 0, 1, 2, ...; both 1-D and as long.
struct Curve {
  Array y;                      ///< the values
  std::string label = "";       ///< in the legend
  std::optional<Array> x = {};  ///< the places
};
/// Options of plot.
struct PlotOptions {
  std::string title = "";    ///< above
  std::string x_label = "";  ///< below
  std::string y_label = "";  ///< at the left
  bool log_x = false;        ///< logarithmic; what is not above 0 is left out
  bool log_y = false;        ///< logarithmic; what is not above 0 is left out
  int width = 720;           ///< in pixels, from 200 to 4000
  int height = 440;          ///< in pixels, from 150 to 4000
};
/// Curves as an .svg. One of more than 4,000 points shows the least and the largest of every run of
/// neighbours, so that no peak is lost. A gap where a value is not finite. ShapeError for x and y of
/// different lengths. Collective over all ranks.
void plot(const std::string& path, const std::vector<Curve>& curves, PlotOptions options = {},
          std::source_location where = std::source_location::current());
/// One curve.
void plot(const std::string& path, const Array& y, PlotOptions options = {},
          std::source_location where = std::source_location::current());

/// Options of histogram.
struct HistogramOptions {
  int bins = 30;                    ///< of equal width, 1 to 1,000
  std::optional<double> low = {};   ///< where the first begins; the least element unless given
  std::optional<double> high = {};  ///< where the last ends; the largest element unless given
  PlotOptions plot = {};            ///< title, labels, size
};
/// How often the elements of an array of any shape fall into each bin, as an .svg. What is not finite or
/// outside does not count. Each rank counts its own; the counts travel. Collective over all ranks.
void histogram(const std::string& path, const Operand& x, HistogramOptions options = {});

/// Options of terminal.
struct TerminalOptions {
  int columns = 72;                  ///< characters, from 8 to 1,000
  int rows = 24;                     ///< at most so many lines, from 1 to 1,000
  std::optional<double> vmin = {};   ///< the darkest; the least element unless given
  std::optional<double> vmax = {};   ///< the lightest; the largest element unless given
  std::string colormap = "viridis";  ///< where there are colours
  /// Whether it may have colours. Unset: ask where standard output ends up.
  std::optional<bool> colour = {};
};
/// A 2-D array in characters, a 1-D one as bars: print it with debug::print("{}", viz::terminal(x)). On
/// rank 0; the other ranks get an empty text. Collective over all ranks.
[[nodiscard]] std::string terminal(const Operand& x, TerminalOptions options = {});

}  // namespace tessera::viz
