// The currently executing Python line, as the source_location that every public function takes: cited by
// errors, program texts and profiles.
#pragma once
#include <source_location>
#include <string>

namespace tessera::python {

// The innermost line outside of the package's own folder. For a known line this costs a load and a
// comparison.
std::source_location here();
// Sets the folder whose lines belong to the package itself.
void set_package_folder(std::string folder);
// The line as errors show it: "train.py:12".
std::string line_text(const std::source_location& where);

}  // namespace tessera::python
