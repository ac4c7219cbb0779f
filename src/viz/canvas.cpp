#include "viz/canvas.hpp"

#include <algorithm>

#include "viz/labels.hpp"
#include "viz/palette.hpp"

namespace tessera::viz {
namespace {

// A frame line such as ┌──┬──┐ for these column widths.
Line rule(const std::vector<int>& widths, const char* left, const char* cross, const char* right) {
  std::string text = left;
  for (std::size_t c = 0; c < widths.size(); ++c)
    text += repeated("─", widths[c]) + (c + 1 < widths.size() ? cross : right);
  return {{text}};
}

// Line k of a cell of this width: padding and label separately, as the ANSI form writes them.
void draw_cell_line(Line& line, const TextCell& cell, int k, int width, int colour) {
  int label_line = k - cell.top;
  if (label_line < 0 || label_line >= static_cast<int>(cell.label.size())) {
    if (width > 0) line.push_back({blanks(width), colour});
    return;
  }
  const std::string& text = cell.label[label_line];
  int spare = std::max(width - cell.left - cell.right - display_width(text), 0);
  int before = cell.left + spare / 2, after = width - before - display_width(text);
  if (before > 0) line.push_back({blanks(before), colour});
  line.push_back({text, colour});
  if (after > 0) line.push_back({blanks(after), colour});
}

void draw_panel(std::vector<Line>& lines, const Picture& picture, const TextPanel& panel, Form form) {
  const std::size_t across = panel.widths.size();
  const bool is_framed = form == Form::framed;
  for (std::size_t r = 0; r < panel.heights.size(); ++r) {
    if (is_framed)
      lines.push_back(r == 0 ? rule(panel.widths, "┌", "┬", "┐") : rule(panel.widths, "├", "┼", "┤"));
    for (int k = 0; k < panel.heights[r]; ++k) {
      Line& line = lines.emplace_back();
      if (is_framed) line.push_back({"│"});
      for (std::size_t c = 0; c < across; ++c) {
        const TextCell& cell = panel.cells[r * across + c];
        int colour = is_framed || cell.block == gap ? -1 : picture.colours[cell.block];
        draw_cell_line(line, cell, k, panel.widths[c], colour);
        if (is_framed) line.push_back({"│"});
      }
    }
  }
  if (is_framed) lines.push_back(rule(panel.widths, "└", "┴", "┘"));
}

// The nearest colour in the 6x6x6 cube of 256-colour terminals.
int cube_index(Rgb colour) {
  auto level = [](int value) { return value < 48 ? 0 : value < 115 ? 1 : (value - 35) / 40; };
  return 16 + 36 * level(colour.r) + 6 * level(colour.g) + level(colour.b);
}

std::string select_graphic(Rgb ink, Rgb ground, ColourDepth depth) {
  auto one = [&](const char* which, Rgb colour) {
    if (depth == ColourDepth::indexed256)
      return std::string(which) + ";5;" + std::to_string(cube_index(colour));
    return std::string(which) + ";2;" + std::to_string(colour.r) + ';' + std::to_string(colour.g) + ';' +
           std::to_string(colour.b);
  };
  return "\x1b[" + one("38", ink) + ';' + one("48", ground) + 'm';
}

}  // namespace

std::vector<Line> draw(const Picture& picture, const TextLayout& layout, Form form) {
  std::vector<Line> lines;
  for (const std::string& text : layout.intro) lines.push_back({{text}});
  for (std::size_t p = 0; p < layout.panels.size(); ++p) {
    const TextPanel& panel = layout.panels[p];
    if (p > 0 && form == Form::coloured) lines.emplace_back();
    if (!panel.heading.empty()) lines.push_back({{panel.heading}});
    draw_panel(lines, picture, panel, form);
  }
  for (const std::string& note : layout.notes) lines.push_back({{note}});
  return lines;
}

std::string to_plain(const std::vector<Line>& lines) {
  std::string text;
  for (const Line& line : lines) {
    for (const Span& span : line) text += span.text;
    text += '\n';
  }
  return text;
}

std::string to_ansi(const std::vector<Line>& lines, ColourDepth depth) {
  std::string text;
  for (const Line& line : lines) {
    for (const Span& span : line) {
      if (span.colour < 0)
        text += span.text;
      else
        text +=
            select_graphic(ink_on(palette(span.colour)), palette(span.colour), depth) + span.text + "\x1b[0m";
    }
    text += '\n';
  }
  return text;
}

std::string escape_markup(const std::string& text) {
  std::string escaped;
  for (char c : text) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '"')
      escaped += "&quot;";
    else
      escaped += c;
  }
  return escaped;
}

std::string to_html(const std::vector<Line>& lines) {
  std::string html =
      "<pre style=\"white-space:pre;overflow-x:auto;line-height:normal;"
      "font-family:Menlo,'DejaVu Sans Mono',consolas,'Courier New',monospace\">";
  for (const Line& line : lines) {
    for (std::size_t first = 0; first < line.size();) {
      std::string run;
      std::size_t end = first;
      while (end < line.size() && line[end].colour == line[first].colour) run += line[end++].text;
      if (line[first].colour < 0) {
        html += escape_markup(run);
      } else {
        Rgb ground = palette(line[first].colour);
        std::string ink = hex(ink_on(ground));
        html += "<span style=\"color: " + ink + "; text-decoration-color: " + ink +
                "; background-color: " + hex(ground) + "\">" + escape_markup(run) + "</span>";
      }
      first = end;
    }
    html += '\n';
  }
  return html + "</pre>";
}

}  // namespace tessera::viz
