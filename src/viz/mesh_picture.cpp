#include <algorithm>
#include <map>

#include <tessera/visualize.hpp>

#include "viz/labels.hpp"
#include "viz/picture.hpp"
#include "viz/text_layout.hpp"

namespace tessera::debug {
namespace {

using namespace viz;

constexpr int page_width = 80;

// A mesh as panels of rows and columns: the last axis across, the one before it down, and one panel per
// position along the others.
struct MeshPages {
  const Mesh& mesh;
  const std::vector<int>& ids = mesh.device_ids();
  const int ndim = mesh.ndim();
  const int across = ndim >= 1 ? mesh.axis_sizes()[ndim - 1] : 1;
  const int down = ndim >= 2 ? mesh.axis_sizes()[ndim - 2] : 1;
  const int panels = mesh.size() / (across * down);

  int id(int panel, int row, int column) const {
    return ids[(static_cast<std::size_t>(panel) * down + row) * across + column];
  }

  // a = 0, b = 2
  std::string panel_title(int panel) const {
    std::string title;
    for (int axis = ndim - 3; axis >= 0; --axis) {
      int size = mesh.axis_sizes()[axis];
      title = mesh.axis_names()[axis] + " = " + std::to_string(panel % size) + (title.empty() ? "" : ", ") +
              title;
      panel /= size;
    }
    return title;
  }

  // The corner above the row numbers, which names both directions: x\y
  std::string corner() const {
    if (ndim == 0) return "";
    if (ndim == 1) return mesh.axis_names()[0];
    return mesh.axis_names()[ndim - 2] + "\\" + mesh.axis_names()[ndim - 1];
  }
};

std::string centred(const std::string& text, int width) {
  int before = std::max(width - display_width(text), 0) / 2;
  return blanks(before) + text + blanks(width - before - display_width(text));
}

std::string right_aligned(const std::string& text, int width) {
  return blanks(width - display_width(text)) + text;
}

std::string frame_line(int gutter, std::size_t columns, int width, const char* left, const char* cross,
                       const char* right) {
  std::string line = blanks(gutter) + left;
  for (std::size_t c = 0; c < columns; ++c) line += repeated("─", width) + (c + 1 < columns ? cross : right);
  return line + '\n';
}

// The table of one panel, truncated at the end of the page.
std::string draw_panel(const MeshPages& pages, int panel, const std::vector<int>& rows,
                       const std::vector<int>& columns) {
  const int largest = *std::max_element(pages.ids.begin(), pages.ids.end());
  const int width =
      static_cast<int>(std::max(std::to_string(largest).size(), std::to_string(pages.across - 1).size())) + 2;
  const int row_number_width = pages.ndim >= 2 ? static_cast<int>(std::to_string(pages.down - 1).size()) : 0;
  const int gutter = std::max(display_width(pages.corner()), row_number_width) + 1;
  const std::vector<int> widths(columns.size(), width);
  std::string text;
  auto from = columns.begin();
  for (int count : break_lines(widths, 1, page_width - gutter)) {
    const std::vector<int> band(from, from + count);
    from += count;
    text += right_aligned(pages.corner(), gutter - 1) + "  ";
    for (int column : band)
      text += centred(column == gap ? std::string(ellipsis_across) : std::to_string(column), width) + ' ';
    while (text.back() == ' ') text.pop_back();
    text += '\n' + frame_line(gutter, band.size(), width, "┌", "┬", "┐");
    for (int row : rows) {
      std::string number = row == gap ? std::string(ellipsis_down) : std::to_string(row);
      text += right_aligned(pages.ndim >= 2 ? number : "", gutter - 1) + " │";
      for (int column : band) {
        std::string cell = row == gap ? std::string(ellipsis_down) : std::string(ellipsis_across);
        if (row != gap && column != gap) cell = std::to_string(pages.id(panel, row, column));
        text += centred(cell, width) + "│";
      }
      text += '\n';
    }
    text += frame_line(gutter, band.size(), width, "└", "┴", "┘");
  }
  return text;
}

// node1: 0-3; node2: 4-7. Empty if all devices share a host or the hosts are unknown.
std::string hosts_of(const Mesh& mesh) {
  std::map<std::string, std::vector<int>> ids_of_host;
  for (const Device& device : mesh.devices()) ids_of_host[device.host].push_back(device.id);
  if (ids_of_host.size() < 2) return "";
  std::string text;
  for (auto& [host, ids] : ids_of_host) {
    std::sort(ids.begin(), ids.end());
    text +=
        (text.empty() ? "Hosts: " : "; ") + (host.empty() ? "unknown" : host) + " has " + short_label(ids);
  }
  return text;
}

}  // namespace

std::string mesh_picture(const Mesh& mesh) {
  const MeshPages pages{mesh};
  const bool is_cut = mesh.size() > most_blocks;
  auto shown = [&](int count, int most) { return is_cut ? first_and_last(count, most) : all_numbers(count); };
  const std::vector<int> rows = shown(pages.down, most_rows(pages.panels)),
                         columns = shown(pages.across, most_columns);
  const std::vector<int> panels = shown(pages.panels, most_panels);

  std::string text =
      text_of(mesh) + ": " + plural(mesh.size(), mesh.is_abstract() ? "abstract device" : "device") + '\n';
  auto count = [](const std::vector<int>& slots) {
    return slots.size() - std::count(slots.begin(), slots.end(), gap);
  };
  for (int panel : panels) {
    if (panel == gap) {
      text += std::string(ellipsis_down) + '\n';
      continue;
    }
    if (pages.ndim >= 3) text += pages.panel_title(panel) + '\n';
    text += draw_panel(pages, panel, rows, columns);
  }
  if (std::size_t drawn = count(rows) * count(columns) * count(panels);
      drawn < static_cast<std::size_t>(mesh.size())) {
    text += std::to_string(drawn) + " of " + std::to_string(mesh.size()) +
            " devices shown; the places marked " + std::string(ellipsis_across) + " and " +
            std::string(ellipsis_down) + " hold the others\n";
  }
  if (std::string hosts = hosts_of(mesh); !hosts.empty()) {
    for (const std::string& line : wrap_words(hosts, page_width)) text += line + '\n';
  }
  return text;
}

}  // namespace tessera::debug
