#include "debug/progress_text.hpp"

#include <algorithm>
#include <cstdio>

namespace tessera {
namespace {

// 0:42, 12:07, 3:05:00
std::string clock_text(double seconds) {
  const auto all = static_cast<long long>(seconds + 0.5);
  char text[40];
  if (all < 3600)
    std::snprintf(text, sizeof text, "%lld:%02lld", all / 60, all % 60);
  else
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", all / 3600, all / 60 % 60, all % 60);
  return text;
}

std::string rate_text(double rate) {
  char text[40];
  std::snprintf(text, sizeof text, rate >= 100 ? "%.0f/s" : rate >= 1 ? "%.1f/s" : "%.3f/s", rate);
  return text;
}

bool is_over(const ProgressState& s) { return s.total > 0 && s.done >= s.total; }

// "470 of 1000  12.5/s  0:42 left  loss 0.031"
std::string figures(const ProgressState& s) {
  std::string text = std::to_string(s.done);
  if (s.total > 0) text += " of " + std::to_string(s.total);
  const double rate = s.seconds > 0 ? static_cast<double>(s.done) / s.seconds : 0;
  if (rate > 0) text += "  " + rate_text(rate);
  if (s.total > 0 && rate > 0 && !is_over(s))
    text += "  " + clock_text(static_cast<double>(s.total - s.done) / rate) + " left";
  else
    text += "  in " + clock_text(s.seconds);
  return s.note.empty() ? text : text + "  " + s.note;
}

int percent(const ProgressState& s) {
  return static_cast<int>(100 * static_cast<double>(std::min(s.done, s.total)) /
                          static_cast<double>(s.total));
}

std::string drawn_bar(const ProgressState& s, int width) {
  const int full =
      static_cast<int>(static_cast<double>(width) * static_cast<double>(std::min(s.done, s.total)) /
                       static_cast<double>(s.total));
  std::string bar(static_cast<std::size_t>(full), '=');
  if (full < width) bar += '>';
  bar.resize(static_cast<std::size_t>(width), ' ');
  return "[" + bar + "]";
}

}  // namespace

std::string progress_line(const ProgressState& s) {
  const std::string share = s.total > 0 ? std::to_string(percent(s)) + " %  " : "";
  return s.what + ": " + share + figures(s);
}

std::string progress_bar(const ProgressState& s, int columns) {
  const auto most = static_cast<std::size_t>(std::max(10, columns - 1));
  if (s.total <= 0) return (s.what + "  " + figures(s)).substr(0, most);
  char share[16];
  std::snprintf(share, sizeof share, "%3d %%", percent(s));
  const std::string after = std::string("  ") + share + "  " + figures(s);
  const int room = static_cast<int>(most) - static_cast<int>(s.what.size() + after.size()) - 4;
  const std::string bar = room < 6 ? "" : "  " + drawn_bar(s, std::min(room, 30));
  return (s.what + bar + after).substr(0, most);
}

}  // namespace tessera
