#include "report.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace demo {
namespace {

// The width of a text on the screen: characters in UTF-8, without colour codes.
std::size_t width(const std::string& s) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    if (s[i] == '\x1b') {
      while (i < s.size() && s[i] != 'm') ++i;
      continue;
    }
    if ((s[i] & 0xC0) != 0x80) ++columns;
  }
  return columns;
}
std::string padded(const std::string& s, std::size_t columns) {
  return s + std::string(columns - std::min(columns, width(s)), ' ');
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

void put(const std::string& line) {
  if (!tessera::is_main_process()) return;
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace

void heading(int number, const std::string& title) {
  put("");
  put(std::to_string(number) + "  " + title);
  put("   " + std::string(width(title), '='));
}

void say(const std::string& text) {
  std::string line;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (width(line) + width(word) + 1 > 96) put("   " + line), line.clear();
    line += (line.empty() ? "" : " ") + word;
  }
  put("   " + line);
}

void show(const std::string& picture) {
  for (const auto& line : lines_of(picture)) put("   " + line);
}

void table(const std::vector<std::string>& names, const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& name : names) widths.push_back(width(name));
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width(row[c]));
  const auto put_row = [&](const std::vector<std::string>& row) {
    std::string line = "  ";
    for (std::size_t c = 0; c < row.size(); ++c) line += " " + padded(row[c], widths[c]) + " ";
    put(line.substr(0, line.find_last_not_of(' ') + 1));
  };
  put_row(names);
  std::vector<std::string> rule;
  for (const auto w : widths) rule.push_back(std::string(w, '-'));
  put_row(rule);
  for (const auto& row : rows) put_row(row);
}

std::string beside(const std::vector<std::string>& pictures, int gap) {
  std::vector<std::vector<std::string>> columns;
  std::size_t height = 0;
  for (const auto& picture : pictures)
    columns.push_back(lines_of(picture)), height = std::max(height, columns.back().size());
  std::string all;
  for (std::size_t row = 0; row < height; ++row) {
    for (const auto& column : columns) {
      std::size_t columns_wide = 0;
      for (const auto& line : column) columns_wide = std::max(columns_wide, width(line));
      all += padded(row < column.size() ? column[row] : "", columns_wide + static_cast<std::size_t>(gap));
    }
    all += "\n";
  }
  return all;
}
std::string under(const std::string& title, const std::string& picture) { return title + "\n" + picture; }

std::string bytes_text(std::int64_t bytes) {
  char text[32];
  if (bytes < 1024)
    std::snprintf(text, sizeof text, "%lld B", static_cast<long long>(bytes));
  else if (bytes < 1024 * 1024)
    std::snprintf(text, sizeof text, "%.1f KiB", static_cast<double>(bytes) / 1024);
  else
    std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1024 * 1024));
  return text;
}
std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, seconds < 1e-3 ? "%.0f µs" : "%.2f ms",
                seconds < 1e-3 ? seconds * 1e6 : seconds * 1e3);
  return text;
}
std::string traffic_text(const tessera::debug::CommStats& stats) {
  std::string all;
  for (const auto& kind : stats.kinds()) {
    const auto calls = stats.calls(kind);
    all += (all.empty() ? "" : " + ") + (calls > 1 ? std::to_string(calls) + " " : "") + kind + " " +
           bytes_text(stats.bytes(kind));
  }
  return all.empty() ? "nothing" : all;
}

double time_of(const std::function<void()>& work, int repetitions) {
  const auto everywhere =
      tessera::NamedSharding(tessera::make_mesh({tessera::device_count()}, {"ranks"}), tessera::P("ranks"));
  std::vector<double> seconds;
  for (int r = 0; r <= repetitions; ++r) {
    // The sum over all ranks acts as a barrier: no rank starts the clock before all have arrived, or stops it
    // before all have finished.
    const auto wait_for_all = [&] {
      tessera::item<float>(
          tessera::sum(tessera::device_put(tessera::ones({tessera::device_count()}), everywhere)));
    };
    wait_for_all();
    const auto start = std::chrono::steady_clock::now();
    work();
    wait_for_all();
    const auto stop = std::chrono::steady_clock::now();
    if (r > 0) seconds.push_back(std::chrono::duration<double>(stop - start).count());  // the first one plans
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

}  // namespace demo
