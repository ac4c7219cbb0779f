// The Python line that is being executed, as the source_location that every public function takes: what
// errors, program texts and profiles cite.
#pragma once
#include <source_location>
#include <string>

namespace tessera::python {

// The innermost line outside of the package's own folder. A load and a comparison when it was asked for
// before.
std::source_location here();
// Whether this process was forked from a rank of a job of several: MPI does not know it, and its calls would
// wait for ever. here(), which every binding asks, refuses it then with a ThreadError.
bool is_forked_child();
void watch_forks();
// Lines of files below this folder are the package's own.
void set_package_folder(std::string folder);
// As errors write it: "train.py:12".
std::string line_text(const std::source_location& where);

}  // namespace tessera::python
