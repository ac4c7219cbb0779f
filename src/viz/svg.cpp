#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include <tessera/visualize.hpp>

#include "base/call.hpp"
#include "viz/labels.hpp"
#include "viz/svg_writer.hpp"
#include "viz/text_layout.hpp"

namespace tessera::debug {
namespace {

using namespace viz;

// In pixels.
constexpr int line_height = 16, swatch = 12;
constexpr int most_width = 960, wanted_width = 720, wanted_height = 400, strip_height = 64,
              least_height = 110;
constexpr int cell_pad = 12, gap_width = 44, gap_height = 26, tick_height = 20, legend_most = 64;

class SvgPicture {
 public:
  SvgPicture(const Picture& picture, const Sharding& sharding) : picture_(picture), sharding_(sharding) {}

  std::string draw() {
    choose_labels();
    size_cells();
    std::string shape = "Shape " + to_string(picture_.grid.shape), held = text_of(sharding_);
    y_ = svg_margin + 14;
    svg_.text(svg_margin, y_, shape, "font-size=\"16\" font-weight=\"bold\"");
    svg_.reach(svg_margin + svg_text_width(shape, 16), y_);
    for (const std::string& line : heading_lines(held)) caption(line, "fill=\"#555555\"");
    if (!picture_.intro.empty()) {
      for (const std::string& line : wrap_words(picture_.intro.substr(shape.size() + 2), chars_across()))
        caption(line, "fill=\"#555555\"");
    }
    draw_panels();
    draw_legend();
    for (const std::string& note : picture_.notes) caption_wrapped(note);
    if (has_ranges_) caption_wrapped(strides_note);
    return svg_.document(shape + ", " + heading_lines(held).front());
  }

 private:
  const std::vector<int>& rows() const { return picture_.panels.front().rows; }
  const std::vector<int>& columns() const { return picture_.panels.front().columns; }
  int gutter() const {
    return picture_.row_dim < 0 ? 0 : line_height + row_tick_width() + 8;
  }  // left of the blocks
  int row_tick_width() const { return svg_text_width(std::to_string(picture_.rows_extent())); }
  int chars_across() const { return static_cast<int>(wanted_width / (svg_font_size * svg_em)); }

  // A sharding of unnamed axes over many devices has a long text, of which three lines suffice.
  std::vector<std::string> heading_lines(const std::string& held) const {
    std::vector<std::string> lines = wrap_words(held, chars_across());
    if (lines.size() > 3) {
      lines.resize(3);
      lines.back() += " …";
    }
    return lines;
  }

  void caption(const std::string& line, const std::string& attributes) {
    y_ += line_height + 2;
    svg_.text(svg_margin, y_, line, attributes);
    svg_.reach(svg_margin + svg_text_width(line), y_);
  }
  void caption_wrapped(const std::string& text) {
    for (const std::string& line : wrap_words(text, chars_across())) caption(line, "fill=\"#555555\"");
  }

  // ---- labels and sizes ----

  // Full names if they fit on the page, else ranges. Lines of a label never exceed their cell, because cells
  // are sized by them.
  void choose_labels() {
    uses_ranges_ = !try_labels(false, 40);
    if (uses_ranges_) try_labels(true, 40);
    bands_ = break_lines(column_needs_, 0, most_width);
    if (bands_.size() == 1 || !picture_.columns_even()) return;
    // Equal blocks have the same size in all bands.
    int widest = *std::max_element(column_needs_.begin(), column_needs_.end());
    column_needs_.assign(columns().size(), widest);
    bands_ = break_lines(column_needs_, 0, most_width);
  }

  bool try_labels(bool ranges, int wrap_width) {
    constexpr int most_label_lines = 4;
    labels_.assign(picture_.grid.holders.size(), {});
    column_needs_.assign(columns().size(), gap_width);
    row_needs_.assign(rows().size(), gap_height);
    bool is_complete = true;
    for (const Panel& panel : picture_.panels) {
      for (std::size_t r = 0; r < rows().size(); ++r) {
        for (std::size_t c = 0; c < columns().size(); ++c) {
          int block = picture_.block(panel, static_cast<int>(r), static_cast<int>(c));
          if (block == gap) continue;
          const std::vector<int>& ids = picture_.grid.holders[block];
          std::vector<std::string>& label = labels_[block];
          label = wrap_label(ranges ? short_label(ids) : full_label(ids), wrap_width, most_label_lines);
          is_complete = is_complete && !label.back().ends_with(" more");
          for (const std::string& line : label) has_ranges_ |= line.find('-') != std::string::npos;
          if (picture_.is_uneven()) label.push_back(size_text(block));
          for (const std::string& line : label)
            column_needs_[c] = std::max(column_needs_[c], svg_text_width(line) + cell_pad);
          row_needs_[r] = std::max(row_needs_[r], static_cast<int>(label.size()) * line_height + cell_pad);
        }
      }
    }
    int all = 0;
    for (int need : column_needs_) all += need;
    return is_complete && all <= most_width;
  }

  std::string size_text(int block) const {
    Shape shape = picture_.grid.block_shape(block);
    return shape.elements() == 0 ? "empty" : to_string(shape);
  }

  // Sizes blocks in proportion to the array, as far as the labels allow.
  void size_cells() {
    double down = static_cast<double>(std::max<std::int64_t>(picture_.rows_extent(), 1));
    double across = static_cast<double>(std::max<std::int64_t>(picture_.columns_extent(), 1));
    const double shrink = picture_.panels.size() > 1 ? 0.6 : 1;  // several panels share the page
    double pixels_per_element = shrink * std::min(wanted_width / across, wanted_height / down);
    int width =
        std::max(static_cast<int>(pixels_per_element * across), static_cast<int>(shrink * wanted_width / 3));
    int height = std::max(static_cast<int>(pixels_per_element * down), least_height);
    if (picture_.row_dim < 0) {
      width = picture_.column_dim < 0 ? wanted_width / 3 : wanted_width;
      height = strip_height;
    }
    std::vector<double> row_weights, column_weights;
    for (int row : rows())
      row_weights.push_back(row == gap                    ? 0
                            : picture_.rows_extent() == 0 ? 1
                                                          : static_cast<double>(picture_.row_size(row)));
    for (int column : columns()) {
      column_weights.push_back(column == gap ? 0
                               : picture_.columns_extent() == 0
                                   ? 1
                                   : static_cast<double>(picture_.column_size(column)));
    }
    heights_ = share_out(height, row_weights, row_needs_);
    widths_ = bands_.size() > 1 ? column_needs_ : share_out(width, column_weights, column_needs_);
  }

  // ---- panels ----

  // Draws panels from left to right, then in further rows.
  void draw_panels() {
    const double first_y = y_;
    double x = svg_margin, row_top = first_y, row_bottom = first_y;
    for (const Panel& panel : picture_.panels) {
      std::size_t from = 0;
      for (const Panel& band : cut_columns(panel, bands_)) {
        auto first = widths_.begin() + static_cast<std::ptrdiff_t>(from);
        const std::vector<int> widths(first, first + static_cast<std::ptrdiff_t>(band.columns.size()));
        from += band.columns.size();
        std::string heading = picture_.panels.size() * bands_.size() > 1 ? picture_.place_of(band) : "";
        double width =
            std::max(gutter() + std::accumulate(widths.begin(), widths.end(), 0), svg_text_width(heading));
        if (x > svg_margin && x + width > svg_margin + most_width) {
          x = svg_margin;
          row_top = row_bottom;
        }
        y_ = row_top;
        draw_panel(band, heading, widths, x);
        row_bottom = std::max(row_bottom, y_);
        x += width + 2 * svg_margin;
      }
    }
    y_ = row_bottom;
  }

  void draw_panel(const Panel& panel, const std::string& heading, const std::vector<int>& widths,
                  double panel_left) {
    const double left = panel_left + gutter();
    y_ += 14;
    if (!heading.empty()) {
      y_ += line_height + 2;
      svg_.text(panel_left, y_, heading, "font-weight=\"bold\"");
      svg_.reach(panel_left + svg_text_width(heading), y_);
    }
    if (picture_.column_dim >= 0) {
      y_ += line_height;
      svg_.text(left, y_, "dim " + std::to_string(picture_.column_dim) + " →", "fill=\"#555555\"");
      y_ += tick_height;
      draw_column_ticks(panel, widths, left);
    }
    const double top = y_ + 6;
    double y = top;
    for (std::size_t r = 0; r < panel.rows.size(); ++r) {
      double x = left;
      for (std::size_t c = 0; c < panel.columns.size(); ++c) {
        draw_cell(picture_.block(panel, static_cast<int>(r), static_cast<int>(c)), panel.rows[r] == gap, x, y,
                  widths[c], heights_[r]);
        x += widths[c];
      }
      y += heights_[r];
    }
    if (picture_.row_dim >= 0) draw_row_ticks(panel, panel_left, left, top);
    y_ = y + 6;
  }

  void draw_cell(int block, bool is_gap_row, double x, double y, double width, double height) {
    if (block == gap) {
      svg_.text(x + width / 2, y + height / 2 + 4, std::string(is_gap_row ? ellipsis_down : ellipsis_across),
                "text-anchor=\"middle\" fill=\"#555555\"");
      svg_.reach(x + width, y + height);
      return;
    }
    Rgb ground = palette(picture_.colours[block]), ink = clear_ink_on(ground);
    if (picture_.grid.block_shape(block).elements() == 0) {
      svg_.rect(x + 2, y + 2, width - 4, height - 4,
                "fill=\"none\" stroke=\"#888888\" stroke-dasharray=\"4 3\"");
      ink = {0x55, 0x55, 0x55};
    } else {
      svg_.rect(x, y, width, height, "fill=\"" + hex(ground) + "\" stroke=\"#ffffff\" stroke-width=\"2\"");
    }
    const std::vector<std::string>& label = labels_[block];
    double line_y = y + height / 2 - (static_cast<double>(label.size()) - 1) * line_height / 2 + 4;
    for (const std::string& line : label) {
      svg_.text(x + width / 2, line_y, line, "text-anchor=\"middle\" fill=\"" + hex(ink) + "\"");
      line_y += line_height;
    }
  }

  // The positions of a direction's ticks and their indices; equal adjacent positions are merged.
  struct Tick {
    double place;
    std::int64_t index;
  };
  static std::vector<Tick> ticks_of(const std::vector<int>& slots, const std::vector<int>& sizes,
                                    const std::vector<Range>& ranges, double from) {
    std::vector<Tick> ticks;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (slots[i] != gap) {
        bool continues = !ticks.empty() && ticks.back().place == from;
        if (!continues) ticks.push_back({from, ranges[slots[i]].start});
        ticks.push_back({from + sizes[i], ranges[slots[i]].stop});
      }
      from += sizes[i];
    }
    return ticks;
  }

  // Selects ticks to label: first and last always, and those between whose texts keep their distance.
  static std::vector<bool> readable(const std::vector<Tick>& ticks, auto half_extent) {
    constexpr double distance = 6;
    std::vector<bool> shown(ticks.size(), false);
    double used = ticks.front().place + half_extent(ticks.front());
    double end = ticks.back().place - half_extent(ticks.back());
    shown.front() = true;
    shown.back() = ticks.size() > 1 && end >= used + distance;
    for (std::size_t i = 1; i + 1 < ticks.size(); ++i) {
      double half = half_extent(ticks[i]);
      if (ticks[i].place - half < used + distance || ticks[i].place + half > end - distance) continue;
      shown[i] = true;
      used = ticks[i].place + half;
    }
    return shown;
  }

  void draw_column_ticks(const Panel& panel, const std::vector<int>& widths, double left) {
    std::vector<Tick> ticks =
        ticks_of(panel.columns, widths, picture_.grid.ranges[picture_.column_dim], left);
    std::vector<bool> shown =
        readable(ticks, [](const Tick& tick) { return svg_text_width(std::to_string(tick.index)) / 2.0; });
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      svg_.line(ticks[i].place, y_ + 2, ticks[i].place, y_ + 6);
      if (!shown[i]) continue;
      svg_.text(ticks[i].place, y_, std::to_string(ticks[i].index), "text-anchor=\"middle\"");
      svg_.reach(ticks[i].place + svg_text_width(std::to_string(ticks[i].index)) / 2.0, y_);
    }
  }

  void draw_row_ticks(const Panel& panel, double panel_left, double left, double top) {
    std::vector<Tick> ticks = ticks_of(panel.rows, heights_, picture_.grid.ranges[picture_.row_dim], top);
    std::vector<bool> shown = readable(ticks, [](const Tick&) { return svg_font_size / 2.0; });
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      svg_.line(left - 6, ticks[i].place, left - 2, ticks[i].place);
      if (shown[i])
        svg_.text(left - 8, ticks[i].place + 4, std::to_string(ticks[i].index), "text-anchor=\"end\"");
    }
    double middle = (ticks.front().place + ticks.back().place) / 2;
    char turn[96];
    std::snprintf(turn, sizeof turn,
                  "text-anchor=\"middle\" fill=\"#555555\" transform=\"rotate(-90 %.1f %.1f)\"",
                  panel_left + 10, middle);
    svg_.text(panel_left + 10, middle, "← dim " + std::to_string(picture_.row_dim), turn);
  }

  // ---- legend ----

  struct Entry {
    int block;
    std::vector<std::string> lines;
  };

  void draw_legend() {
    std::vector<Entry> entries;
    int shown = 0, widest = 0;
    for (int block = 0; block < picture_.grid.blocks(); ++block) {
      if (picture_.colours[block] < 0 || ++shown > legend_most) continue;
      const std::vector<int>& ids = picture_.grid.holders[block];
      Entry entry{block, wrap_label(uses_ranges_ ? short_label(ids) : full_label(ids), 72, 12)};
      entry.lines.back() += "  " +
                            (picture_.grid.shape.ndim() ? to_string(picture_.grid.box(block)) + "  " : "") +
                            size_text(block);
      for (const std::string& line : entry.lines) widest = std::max(widest, svg_text_width(line));
      entries.push_back(std::move(entry));
    }
    y_ += 2 * line_height;
    svg_.text(svg_margin, y_, "Devices, place and size of each block", "font-weight=\"bold\"");
    svg_.reach(svg_margin + svg_text_width("Devices, place and size of each block"), y_);
    y_ += 8;
    const int entry_width = swatch + 8 + widest + 28;
    const std::size_t across = static_cast<std::size_t>(
        std::max(std::max<int>(wanted_width, static_cast<int>(svg_.width()) - svg_margin) / entry_width, 1));
    const std::size_t per_column = (entries.size() + across - 1) / across;
    double lowest = y_;
    for (std::size_t i = 0; i < entries.size(); i += per_column) {
      double y = y_, x = svg_margin + static_cast<double>(i / per_column) * entry_width;
      for (std::size_t k = i; k < std::min(i + per_column, entries.size()); ++k)
        y = draw_entry(entries[k], x, y);
      lowest = std::max(lowest, y);
      svg_.reach(x + entry_width - 28, y);
    }
    y_ = lowest;
    if (shown > legend_most)
      caption_wrapped("and " + plural(shown - legend_most, "block") + " more, named in the picture alone");
  }

  double draw_entry(const Entry& entry, double x, double y) {
    if (picture_.grid.block_shape(entry.block).elements() == 0) {
      svg_.rect(x, y + 3, swatch, swatch, "fill=\"none\" stroke=\"#888888\" stroke-dasharray=\"4 3\"");
    } else {
      svg_.rect(x, y + 3, swatch, swatch, "fill=\"" + hex(palette(picture_.colours[entry.block])) + "\"");
    }
    for (const std::string& line : entry.lines) {
      y += line_height;
      svg_.text(x + swatch + 8, y - 3, line, "xml:space=\"preserve\"");
    }
    return y;
  }

  const Picture& picture_;
  const Sharding& sharding_;
  SvgWriter svg_;
  double y_ = 0;  // the lower edge of the latest drawing
  bool uses_ranges_ = false, has_ranges_ = false;
  std::vector<std::vector<std::string>> labels_;  // [block]
  std::vector<int> column_needs_, row_needs_;     // pixels that the labels need
  std::vector<int> bands_;                        // number of columns in each band
  std::vector<int> widths_, heights_;
};

}  // namespace

std::string sharding_svg(const Shape& shape, const Sharding& sharding, std::source_location where) {
  const Call call("sharding_svg", where);
  const Picture picture = picture_of(shape, sharding, call_text().c_str());
  return SvgPicture(picture, sharding).draw();
}

}  // namespace tessera::debug
