/// @file
/// Pictures of data: images, curves, histograms, and pictures made of characters.
///
/// **Collective** over all ranks: arrays are computed. Each rank reduces its own block to the resolution of
/// the picture, and only rank 0 receives the result and writes: for an array of any size at most the
/// picture's pixels are sent, and it is never gathered. A path ends in .svg or .png, as each function states.
///
/// **Errors**, on every rank with the same text: ShapeError for a number of dims that cannot be drawn,
/// DtypeError for complex numbers (take abs, real or angle), ArgumentError for another ending, an unknown
/// colormap, or invalid options, IoError if rank 0 cannot write.
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
  std::optional<double> vmin = {};   ///< value of the first colour; the least element unless given
  std::optional<double> vmax = {};   ///< value of the last colour; the largest element unless given
  int max_pixels = 1024;             ///< limit of either side: longer sides are averaged down to it
  int enlarge = 1;                   ///< pixels per element and direction
  std::string title = "";            ///< in .svg, like all following fields
  std::string x_label = "";          ///< below the picture
  std::string y_label = "";          ///< on the left
};
/// A 2-D array as a picture, row 0 at the top, one pixel per element. A .png has only the pixels; an .svg
/// also has axes with the indices, and the scale of colours. NaN is transparent. Collective over all ranks.
void image(const std::string& path, const Operand& x, ImageOptions options = {});

/// A curve of plot: y over x, or over 0, 1, 2, ...; both 1-D and of the same length.
struct Curve {
  Array y;                      ///< the values
  std::string label = "";       ///< in the legend
  std::optional<Array> x = {};  ///< the abscissas
};
/// Options of plot.
struct PlotOptions {
  std::string title = "";    ///< above
  std::string x_label = "";  ///< below the chart
  std::string y_label = "";  ///< on the left
  bool log_x = false;        ///< logarithmic; values not above 0 are left out
  bool log_y = false;        ///< logarithmic; values not above 0 are left out
  int width = 720;           ///< in pixels, from 200 to 4000
  int height = 440;          ///< in pixels, from 150 to 4000
};
/// Curves as an .svg. A curve of more than 4,000 points shows the least and the largest value of every run of
/// neighbours, so that no peak is lost. Values that are not finite leave a gap. ShapeError for x and y of
/// different lengths. Collective over all ranks.
void plot(const std::string& path, const std::vector<Curve>& curves, PlotOptions options = {},
          std::source_location where = std::source_location::current());
/// One curve.
void plot(const std::string& path, const Array& y, PlotOptions options = {},
          std::source_location where = std::source_location::current());

/// Options of histogram.
struct HistogramOptions {
  int bins = 30;                    ///< number of bins of equal width, 1 to 1,000
  std::optional<double> low = {};   ///< start of the first bin; the least element unless given
  std::optional<double> high = {};  ///< end of the last bin; the largest element unless given
  PlotOptions plot = {};            ///< title, labels, size
};
/// The number of elements of an array of any shape in each bin, as an .svg. Elements that are not finite or
/// outside are not counted. Each rank counts its own elements; only counts are sent. Collective over all
/// ranks.
void histogram(const std::string& path, const Operand& x, HistogramOptions options = {});

/// Options of terminal.
struct TerminalOptions {
  int columns = 72;                  ///< characters, from 8 to 1,000
  int rows = 24;                     ///< maximum number of lines, from 1 to 1,000
  std::optional<double> vmin = {};   ///< the darkest; the least element unless given
  std::optional<double> vmax = {};   ///< the lightest; the largest element unless given
  std::string colormap = "viridis";  ///< if there are colours
  /// Whether to use colours. Unset: detected from the destination of standard output.
  std::optional<bool> colour = {};
};
/// A 2-D array in characters, a 1-D one as bars: print it with debug::print("{}", viz::terminal(x)). Returned
/// on rank 0; the other ranks get an empty text. Collective over all ranks.
[[nodiscard]] std::string terminal(const Operand& x, TerminalOptions options = {});

}  // namespace tessera::viz
