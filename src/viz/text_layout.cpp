#include "viz/text_layout.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "viz/labels.hpp"

namespace tessera::viz {
namespace {

constexpr int most_label_lines = 6;    // before "+N more"
constexpr int most_uneven_lines = 24;  // most lines of all rows together, if the labels fit
constexpr int gap_width = 3;
constexpr double character_aspect = 2.5;  // height divided by width

enum class Naming { full, ranges };

int sum(const std::vector<int>& numbers) { return std::accumulate(numbers.begin(), numbers.end(), 0); }

// Splits n, which may be negative, as JAX does: -1 is -1 + 0, and an odd remainder is added on the right.
struct Padding {
  int near = 0, far = 0;
};
Padding jax_padding(int n, int more) {
  int near = static_cast<int>(std::floor(n / 2.0)), far = n - near;
  return {std::max(near + more, 0), std::max(far + more, 0)};
}

// The extents of the blocks in the slots of one direction.
std::vector<double> slot_weights(const std::vector<int>& slots, std::int64_t extent, auto size_of) {
  std::vector<double> weights;
  for (int slot : slots)
    weights.push_back(slot == gap ? 0 : extent == 0 ? 1 : static_cast<double>(size_of(slot)));
  return weights;
}

// The total size at which the smallest nonempty block fits its label, with the others in proportion.
int proportional_total(const std::vector<double>& weights, const std::vector<int>& needs, int most) {
  double unit = 0, all = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    all += weights[i];
    if (weights[i] > 0) unit = std::max(unit, needs[i] / weights[i]);
  }
  return static_cast<int>(std::min(std::ceil(unit * all), static_cast<double>(most)));
}

class Layouter {
 public:
  Layouter(const Picture& picture, const debug::VisualizeOptions& options, Form form)
      : picture_(picture),
        options_(options),
        is_coloured_(form == Form::coloured),
        frame_(is_coloured_ ? 0 : 1) {
    base_height_ = static_cast<int>(10 * options.scale);
    bool is_flat = picture.row_dim < 0;  // JAX draws (n,) as n rows of 1, then transposes it
    double down = static_cast<double>(is_flat ? picture.columns_extent() : picture.rows_extent());
    double across = static_cast<double>(is_flat ? 1 : picture.columns_extent());
    base_width_ = std::floor(base_height_ * (down == 0 || across == 0 ? 1.0 : across / down));
  }

  TextLayout lay_out() {
    const std::vector<int> one_band = {static_cast<int>(columns().size())};
    for (Naming naming : {Naming::full, Naming::ranges}) {
      name_cells(naming, no_wrap);
      if (picture_.columns_even()) {
        pad_like_jax();
        if (fits()) return finish(one_band, {needs_});
      }
      measure();
      if (fits()) return fill(one_band);
    }
    name_cells(Naming::ranges, options_.max_width - 2 * frame_ - inner_pad());
    measure();
    return fill(break_lines(needs_, frame_, options_.max_width));
  }

 private:
  static constexpr int no_wrap = 1 << 30;
  const std::vector<int>& columns() const {
    return picture_.panels.front().columns;
  }  // panels have equal widths and heights
  const std::vector<int>& rows() const { return picture_.panels.front().rows; }
  int inner_pad() const { return is_coloured_ ? 1 : 0; }  // separates labels on adjacent colours
  bool fits() const {
    return sum(needs_) + frame_ * (static_cast<int>(needs_.size()) + 1) <= options_.max_width;
  }

  std::vector<std::string> label_of(int block, Naming naming, int width) const {
    const std::vector<int>& ids = picture_.grid.holders[block];
    std::string name = naming == Naming::full ? full_label(ids) : short_label(ids);
    std::vector<std::string> lines =
        width == no_wrap ? std::vector<std::string>{name} : wrap_label(name, width, most_label_lines);
    if (!picture_.is_uneven()) return lines;
    Shape shape = picture_.grid.block_shape(block);
    lines.push_back(shape.elements() == 0 ? "empty" : to_string(shape));
    return lines;
  }

  void name_cells(Naming naming, int width) {
    cells_.clear();
    has_strides_ = has_ranges_ = false;
    for (const Panel& panel : picture_.panels) {
      std::vector<TextCell>& cells = cells_.emplace_back();
      for (std::size_t r = 0; r < rows().size(); ++r) {
        for (std::size_t c = 0; c < columns().size(); ++c) {
          TextCell& cell = cells.emplace_back();
          cell.block = picture_.block(panel, static_cast<int>(r), static_cast<int>(c));
          if (cell.block != gap) {
            cell.label = label_of(cell.block, naming, width);
            for (const std::string& line : cell.label)
              has_strides_ |= line[0] != '(' && line.find(':') != std::string::npos;
            for (const std::string& line : cell.label)
              has_ranges_ |= line[0] != '(' && line.find('-') != std::string::npos;
          } else if (rows()[r] != gap) {
            cell.label = {std::string(ellipsis_across)};
          } else if (columns()[c] != gap) {
            cell.label = {std::string(ellipsis_down)};
          }
        }
      }
    }
  }

  static int label_width(const TextCell& cell) {
    int width = 0;
    for (const std::string& line : cell.label) width = std::max(width, display_width(line));
    return width;
  }

  // Each cell is as wide as its share of the array, within JAX's limits; a column is as wide as its widest
  // cell.
  void pad_like_jax() {
    needs_.assign(columns().size(), 0);
    for (std::vector<TextCell>& cells : cells_) {
      for (std::size_t i = 0; i < cells.size(); ++i) {
        std::size_t c = i % columns().size();
        int width = gap_width + 2 - 2 * inner_pad();
        if (columns()[c] != gap) {
          double fraction = static_cast<double>(picture_.column_size(columns()[c])) /
                            static_cast<double>(picture_.columns_extent());
          double asked = std::floor(fraction * base_width_ * character_aspect);
          width = static_cast<int>(
              std::min<double>(std::max<double>(asked, options_.min_width), options_.max_width));
        }
        Padding padding = jax_padding(width - label_width(cells[i]) - 2, inner_pad());
        cells[i].left = padding.near;
        cells[i].right = padding.far;
        needs_[c] = std::max(needs_[c], padding.near + label_width(cells[i]) + padding.far);
        if (cells[i].label.size() > 1)
          cells[i].left = cells[i].right = 0;  // lines of different lengths are centered one by one
      }
    }
  }

  // Computes the minimum widths that the labels need.
  void measure() {
    needs_.assign(columns().size(), 0);
    for (std::vector<TextCell>& cells : cells_) {
      for (std::size_t i = 0; i < cells.size(); ++i) {
        cells[i].left = cells[i].right = 0;
        int& need = needs_[i % columns().size()];
        need = std::max(need, label_width(cells[i]) + inner_pad());
      }
    }
  }

  // Column widths in proportion to the blocks, band by band; `counts` gives the columns of each band.
  TextLayout fill(const std::vector<int>& counts) {
    std::vector<double> weights = slot_weights(columns(), picture_.columns_extent(),
                                               [this](int slot) { return picture_.column_size(slot); });
    std::vector<std::vector<double>> band_weights;
    std::vector<std::vector<int>> band_needs, band_widths;
    double heaviest = 0;
    for (std::size_t band = 0, from = 0; band < counts.size(); from += counts[band++]) {
      band_weights.emplace_back(weights.begin() + from, weights.begin() + from + counts[band]);
      band_needs.emplace_back(needs_.begin() + from, needs_.begin() + from + counts[band]);
      heaviest =
          std::max(heaviest, std::accumulate(band_weights.back().begin(), band_weights.back().end(), 0.0));
    }
    const int most = options_.max_width - frame_ * (*std::max_element(counts.begin(), counts.end()) + 1);
    int total = most;
    if (picture_.columns_even()) {
      total -= total % *std::max_element(counts.begin(), counts.end());
    } else if (counts.size() == 1) {
      int asked = static_cast<int>(std::min<double>(base_width_ * character_aspect, most));
      total = std::max(asked, proportional_total(weights, needs_, most));
    }
    for (std::size_t band = 0; band < counts.size(); ++band) {
      double weight = std::accumulate(band_weights[band].begin(), band_weights[band].end(), 0.0);
      band_widths.push_back(
          share_out(static_cast<int>(total * weight / heaviest), band_weights[band], band_needs[band]));
    }
    return finish(counts, band_widths);
  }

  // Lines above and below the label of each cell of one row.
  int pad_lines(TextCell& cell, int slot) const {
    int lines = std::max(static_cast<int>(cell.label.size()), 1);
    int height = 1;
    if (slot != gap && picture_.row_dim >= 0) {
      height = static_cast<int>(static_cast<double>(picture_.row_size(slot)) /
                                static_cast<double>(picture_.rows_extent()) * base_height_);
    }
    Padding padding = jax_padding(height - 2, slot == gap ? 0 : inner_pad());
    int spare = std::max(padding.near + 1 + padding.far - lines, 0);
    cell.top = lines == 1 ? padding.near : spare / 2;
    cell.bottom = lines == 1 ? padding.far : spare - spare / 2;
    return cell.top + lines + cell.bottom;
  }

  std::vector<int> heights_of(std::vector<TextCell>& cells) const {
    const std::size_t across = columns().size();
    std::vector<int> heights(rows().size(), 1);
    if (picture_.rows_even()) {
      for (std::size_t i = 0; i < cells.size(); ++i)
        heights[i / across] = std::max(heights[i / across], pad_lines(cells[i], rows()[i / across]));
      return heights;
    }
    for (std::size_t i = 0; i < cells.size(); ++i)
      heights[i / across] = std::max(heights[i / across], static_cast<int>(cells[i].label.size()));
    std::vector<double> weights =
        slot_weights(rows(), picture_.rows_extent(), [this](int slot) { return picture_.row_size(slot); });
    int most = std::max(most_uneven_lines, base_height_);
    heights = share_out(std::max(base_height_, proportional_total(weights, heights, most)), weights, heights);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      int spare = heights[i / across] - static_cast<int>(cells[i].label.size());
      cells[i].top = spare / 2;
      cells[i].bottom = spare - spare / 2;
    }
    return heights;
  }

  TextLayout finish(const std::vector<int>& counts, const std::vector<std::vector<int>>& band_widths) {
    TextLayout layout;
    for (std::size_t p = 0; p < picture_.panels.size(); ++p) {
      std::vector<int> heights = heights_of(cells_[p]);
      std::vector<Panel> bands = cut_columns(picture_.panels[p], counts);
      for (std::size_t band = 0, from = 0; band < bands.size(); from += counts[band++]) {
        TextPanel& made = layout.panels.emplace_back();
        if (bands.size() * picture_.panels.size() > 1) made.heading = picture_.place_of(bands[band]);
        made.widths = band_widths[band];
        made.heights = heights;
        for (std::size_t r = 0; r < rows().size(); ++r) {
          auto row = cells_[p].begin() + static_cast<std::ptrdiff_t>(r * columns().size() + from);
          made.cells.insert(made.cells.end(), row, row + counts[band]);
        }
      }
    }
    auto add = [this](std::vector<std::string>& lines, const std::string& text) {
      for (std::string& line : wrap_words(text, options_.max_width)) lines.push_back(std::move(line));
    };
    add(layout.intro, picture_.intro);
    for (const std::string& note : picture_.notes) add(layout.notes, note);
    if (has_strides_)
      add(layout.notes, strides_note);
    else if (has_ranges_)
      add(layout.notes, ranges_note);
    return layout;
  }

  const Picture& picture_;
  const debug::VisualizeOptions& options_;
  const bool is_coloured_;
  const int frame_;  // characters between columns and at both ends
  int base_height_ = 0;
  double base_width_ = 0;
  bool has_strides_ = false, has_ranges_ = false;
  std::vector<std::vector<TextCell>> cells_;  // [panel][row-major]
  std::vector<int> needs_;                    // [column]: characters
};

}  // namespace

std::vector<int> share_out(int total, const std::vector<double>& weights, const std::vector<int>& needs) {
  std::vector<int> sizes = needs;
  std::vector<bool> is_fixed(needs.size(), false);
  double unit = 0;
  // Items whose share is below their need get their need; this reduces the others' shares, until no further
  // item falls below.
  for (bool changed = true; changed;) {
    changed = false;
    double rest = total, weight = 0;
    for (std::size_t i = 0; i < needs.size(); ++i) {
      if (is_fixed[i])
        rest -= needs[i];
      else
        weight += weights[i];
    }
    unit = weight > 0 ? rest / weight : 0;
    for (std::size_t i = 0; i < needs.size(); ++i) {
      if (is_fixed[i] || weights[i] * unit >= needs[i]) continue;
      is_fixed[i] = changed = true;
    }
  }
  // Rounds down, then adds one to the items with the largest fractions.
  std::vector<std::size_t> free_items;
  int rest = total;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    if (!is_fixed[i]) {
      sizes[i] = static_cast<int>(weights[i] * unit + 1e-9);
      free_items.push_back(i);
    }
    rest -= sizes[i];
  }
  auto lost = [&](std::size_t i) { return weights[i] * unit - sizes[i]; };
  std::stable_sort(free_items.begin(), free_items.end(),
                   [&](std::size_t a, std::size_t b) { return lost(a) > lost(b) + 1e-9; });
  for (std::size_t k = 0; k < free_items.size() && rest > 0; ++k, --rest) ++sizes[free_items[k]];
  return sizes;
}

std::vector<int> break_lines(const std::vector<int>& widths, int separator, int most) {
  // Uses as few lines as greedy filling, then the widest even filling with that number of lines.
  auto count_with = [&](int per_line) {
    std::vector<int> counts;
    int used = most + 1;
    for (int width : widths) {
      bool fits = !counts.empty() && used + width + separator <= most && counts.back() < per_line;
      if (!fits) {
        counts.push_back(0);
        used = separator;
      }
      ++counts.back();
      used += width + separator;
    }
    return counts;
  };
  std::vector<int> greedy = count_with(static_cast<int>(widths.size()));
  int even = static_cast<int>((widths.size() + greedy.size() - 1) / greedy.size());
  std::vector<int> evened = count_with(even);
  return evened.size() == greedy.size() ? evened : greedy;
}

TextLayout lay_out(const Picture& picture, const debug::VisualizeOptions& options, Form form) {
  return Layouter(picture, options, form).lay_out();
}

}  // namespace tessera::viz
