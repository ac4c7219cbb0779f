// The names of sets of devices, in several lengths.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tessera::viz {

inline constexpr std::string_view ellipsis_across = "⋯", ellipsis_down = "⋮";

// The note that explains short labels.
inline constexpr const char* ranges_note = "a-b names all devices from a to b";
inline constexpr const char* strides_note = "a-b names all devices from a to b, a-b:s every s-th";

std::string full_label(const std::vector<int>& ids);   // CPU 0,1,2,3,8
std::string short_label(const std::vector<int>& ids);  // CPU 0-3,8   and CPU 0-6:2 for 0,2,4,6

// Breaks a label after commas into lines of at most `width` characters (longer only if a single name is).
// Names beyond max_lines are replaced by "+N more".
std::vector<std::string> wrap_label(const std::string& label, int width, int max_lines);

std::vector<std::string> wrap_words(const std::string& text, int width);  // at blanks

int display_width(std::string_view utf8);  // in characters
std::string blanks(int count);             // none for a negative count
std::string repeated(std::string_view text, int count);
std::string plural(int count, const std::string& noun);  // "1 block", "2 blocks"

}  // namespace tessera::viz
