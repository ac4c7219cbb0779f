#include "viz/labels.hpp"

#include <algorithm>

namespace tessera::viz {
namespace {

constexpr std::string_view platform = "CPU ";

// The end of the longest run ids[first], ids[first] + step, ... that starts with ids[first] and ids[first +
// 1].
std::size_t run_end(const std::vector<int>& ids, std::size_t first) {
  if (first + 1 >= ids.size()) return first + 1;
  int step = ids[first + 1] - ids[first];
  std::size_t end = first + 2;
  while (end < ids.size() && ids[end] - ids[end - 1] == step) ++end;
  return end;
}

std::vector<std::string> cut_after_commas(const std::string& label) {
  std::vector<std::string> names;
  for (std::size_t from = 0; from < label.size();) {
    std::size_t comma = label.find(',', from);
    std::size_t end = comma == std::string::npos ? label.size() : comma + 1;
    names.push_back(label.substr(from, end - from));
    from = end;
  }
  return names;
}

}  // namespace

std::string full_label(const std::vector<int>& ids) {
  std::string label(platform);
  for (std::size_t i = 0; i < ids.size(); ++i) label += (i ? "," : "") + std::to_string(ids[i]);
  return label;
}

std::string short_label(const std::vector<int>& ids) {
  std::string label(platform);
  for (std::size_t i = 0; i < ids.size();) {
    if (i) label += ',';
    label += std::to_string(ids[i]);
    std::size_t end = run_end(ids, i);
    if (end - i < 3) {
      ++i;
      continue;
    }
    label += '-' + std::to_string(ids[end - 1]);
    if (int step = ids[i + 1] - ids[i]; step > 1) label += ':' + std::to_string(step);
    i = end;
  }
  return label;
}

std::vector<std::string> wrap_label(const std::string& label, int width, int max_lines) {
  const std::vector<std::string> names = cut_after_commas(label);
  std::vector<std::string> lines;
  std::size_t used = 0;
  for (; used < names.size(); ++used) {
    const std::string& name = names[used];
    if (!lines.empty() && display_width(lines.back()) + display_width(name) <= width) {
      lines.back() += name;
    } else if (static_cast<int>(lines.size()) < max_lines) {
      lines.push_back(name);
    } else {
      break;
    }
  }
  if (used == names.size()) return lines;
  // Makes room on the last line for the count of omitted names.
  std::string& last = lines.back();
  std::string more = '+' + std::to_string(names.size() - used) + " more";
  while (display_width(last) + display_width(more) > width) {
    std::size_t comma = last.size() < 2 ? std::string::npos : last.rfind(',', last.size() - 2);
    if (comma == std::string::npos) break;
    last.resize(comma + 1);
    --used;
    more = '+' + std::to_string(names.size() - used) + " more";
  }
  last += more;
  return lines;
}

std::vector<std::string> wrap_words(const std::string& text, int width) {
  std::vector<std::string> lines;
  for (std::size_t from = 0; from < text.size();) {
    std::size_t end = std::min(text.find(' ', from), text.size());
    std::string word = text.substr(from, end - from);
    if (!lines.empty() && display_width(lines.back()) + 1 + display_width(word) <= width)
      lines.back() += ' ' + word;
    else
      lines.push_back(word);
    from = end + 1;
  }
  return lines;
}

int display_width(std::string_view utf8) {
  return static_cast<int>(std::count_if(utf8.begin(), utf8.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string blanks(int count) { return std::string(std::max(count, 0), ' '); }

std::string repeated(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

std::string plural(int count, const std::string& noun) {
  return std::to_string(count) + ' ' + noun + (count == 1 ? "" : "s");
}

}  // namespace tessera::viz
