// Small files that a program keeps for its next run, in a folder that others may write to as well.
#pragma once
#include <optional>
#include <string>

namespace tessera {

// The text of a regular file that belongs to this user and that nobody else may write; nothing otherwise.
std::optional<std::string> read_own_file(const std::string& path);
// The file has the new text or the old one, whatever happens and however many do it at once: it is written
// under a name by chance and renamed. The folder is made when it is missing. False where that failed.
bool replace_own_file(const std::string& path, const std::string& text);

}  // namespace tessera
