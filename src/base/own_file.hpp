// Small files that a program keeps for its next run, in a folder that other users may write to as well.
#pragma once
#include <optional>
#include <string>

namespace tessera {

// The text of a regular file that belongs to this user and that no other user may write; nullopt otherwise.
std::optional<std::string> read_own_file(const std::string& path);
// Replaces the file atomically, also among concurrent writers: the text is written under a random name and
// renamed. Creates a missing folder. False on failure.
bool replace_own_file(const std::string& path, const std::string& text);

}  // namespace tessera
