#include "python/place.hpp"

#include <pybind11/pybind11.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include <tessera/error.hpp>
#include <tessera/runtime.hpp>

#include "base/child_process.hpp"
#include "base/text.hpp"
#include "base/text/foreign_line.hpp"

namespace tessera::python {
namespace {

// The line of a code object at one of its instructions. Code objects are kept alive, so that their addresses
// stay unique.
struct CodePosition {
  PyCodeObject* code = nullptr;
  int instruction = -1;
  const ForeignLine* line = nullptr;  // nullptr: in the package itself
};

struct CodePositions {
  std::string package;
  std::map<PyCodeObject*, bool> is_own;
  std::array<CodePosition, 1024> recent;
};
CodePositions& places() {
  static auto* const all = new CodePositions();  // never destroyed: the interpreter may end first
  return *all;
}

int instruction_of(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030b0000
  return PyFrame_GetLasti(frame);
#else
  return PyFrame_GetLineNumber(frame);
#endif
}

bool is_own(PyCodeObject* code) {
  auto [found, is_new] = places().is_own.try_emplace(code, false);
  if (is_new) {
    Py_INCREF(code);
    const auto& folder = places().package;
    const auto file = pybind11::handle(code->co_filename).cast<std::string>();
    const bool is_numpys =
        file.starts_with("<__array_function__");  // NumPy's frame between the user's line and the package
    found->second = is_numpys || (!folder.empty() && file.starts_with(folder));
  }
  return found->second;
}

CodePosition look_up(PyFrameObject* frame, PyCodeObject* code, int instruction) {
  if (is_own(code)) return {code, instruction, nullptr};
  const auto file = pybind11::handle(code->co_filename).cast<std::string>();
  return {code, instruction, foreign_line(file, PyFrame_GetLineNumber(frame))};
}

const ForeignLine* line_of(PyFrameObject* frame) {
  PyCodeObject* code = PyFrame_GetCode(frame);
  const int instruction = instruction_of(frame);
  const auto slot = (reinterpret_cast<std::uintptr_t>(code) >> 4) * 31 + static_cast<unsigned>(instruction);
  CodePosition& place = places().recent[slot % places().recent.size()];
  if (place.code != code || place.instruction != instruction) place = look_up(frame, code, instruction);
  Py_DECREF(code);
  return place.line;
}

[[noreturn]] void refuse_child(const std::source_location& where) {
  throw ThreadError(
      line_text(where) + ": this process was forked from process " + std::to_string(process_index()) +
      " of " + std::to_string(process_count()) +
      ", and MPI does not know it: its calls would wait for ever. Use tessera in the processes of "
      "the job alone; give a child NumPy arrays (device_get before the fork), or start it anew "
      "(multiprocessing's \"spawn\")");
}

}  // namespace

std::source_location here() {
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  const ForeignLine* line = nullptr;
  while (frame != nullptr && (line = line_of(frame)) == nullptr) {
    PyFrameObject* caller = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = caller;
  }
  Py_XDECREF(frame);
  const auto where = location_of(line);
  if (is_child_of_rank_with_peers()) [[unlikely]]
    refuse_child(where);
  return where;
}

void set_package_folder(std::string folder) { places().package = std::move(folder); }

std::string line_text(const std::source_location& where) {
  return where.line() == 0 ? std::string() : format_site(where);
}

}  // namespace tessera::python
