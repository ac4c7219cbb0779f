// The Python line that is being executed, as the source_location that every public function takes: what
// errors, program texts and profiles cite.
#pragma once
#include <source_location>
#include <string>

namespace tessera::python {

// The innermost line outside of the package's own folder. A load and a comparison when it was asked for
// before.
std::source_location here();
// Lines of files below this folder are the package's own.
void set_package_folder(std::string folder);
// As errors write it: "train.py:12".
std::string line_text(const std::source_location& where);

}  // namespace tessera::python
