// Text helpers for error messages.
#pragma once
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

std::string in_quotes(std::string_view);  // 'x'
std::string join(const std::vector<std::string>&, std::string_view separator = ", ");
std::string format_bytes(std::int64_t bytes);                         // 512 B, 1.5 KiB, 37.2 GiB
std::string format_count(std::int64_t n, std::string_view singular);  // 1 rank, 3 ranks
std::string format_ids(const std::vector<int>& ids);                  // 0-2, 5, 7-8 (ids in increasing order)
// The known word nearest to a mistyped one, as " (did you mean 'x'?)"; empty if none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

// The user's line: "file.cpp:12", without folders.
std::string format_site(const std::source_location&);

}  // namespace tessera
