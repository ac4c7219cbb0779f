// Writes Matrix Market files: all entries in column order, or only the nonzero ones.
#include "base/call.hpp"
#include "base/text.hpp"
#include "graph/op.hpp"
#include "io/text/text_values.hpp"
#include "kernels/visit.hpp"

namespace tessera::io {
namespace {

std::string banner(const Array& x, bool coordinate) {
  const char* field = is_complex(x.dtype()) ? "complex" : is_inexact(x.dtype()) ? "real" : "integer";
  return std::string("%%MatrixMarket matrix ") + (coordinate ? "coordinate " : "array ") + field +
         " general\n" + std::to_string(x.shape()[0]) + " " + std::to_string(x.shape()[1]);
}

// The k-th entry of a block that holds whole columns.
struct DownColumns {
  std::int64_t rows, columns;
  std::int64_t place(std::int64_t k) const { return k % rows * columns + k / rows; }
};

TextWriter all_entries(const Array& x) {
  TextWriter writer;
  writer.header = [x](std::int64_t) { return banner(x, false) + "\n"; };
  writer.write = [x](const OwnBlock& own, std::int64_t first, std::int64_t last, std::string& out) {
    const DownColumns order{own.box[0].size(), own.box[1].size()};
    kernels::visit_stored(x.dtype(), [&]<class T>(T) {
      const auto* values = reinterpret_cast<const T*>(own.data);
      for (std::int64_t k = first; k < last; ++k) {
        append_number(out, values[order.place(k)]);
        out += '\n';
      }
    });
    return last - first;
  };
  return writer;
}

TextWriter nonzero_entries(const Array& x) {
  TextWriter writer;
  writer.header = [x](std::int64_t entries) {
    return banner(x, true) + " " + std::to_string(entries) + "\n";
  };
  writer.write = [x](const OwnBlock& own, std::int64_t first, std::int64_t last, std::string& out) {
    std::int64_t entries = 0;
    const std::int64_t columns = own.box[1].size();
    kernels::visit_stored(x.dtype(), [&]<class T>(T) {
      const auto* values = reinterpret_cast<const T*>(own.data);
      for (std::int64_t k = first; k < last; ++k) {
        if (values[k] == T(0)) continue;
        append_number(out, own.box[0].start + k / columns + 1);
        out += ' ';
        append_number(out, own.box[1].start + k % columns + 1);
        out += ' ';
        append_number(out, values[k]);
        out += '\n';
        ++entries;
      }
    });
    return entries;
  };
  return writer;
}

}  // namespace

void save_matrix_market(const std::string& path, const Array& x, const MatrixMarketOptions& options,
                        std::source_location where) {
  const Call call("save_matrix_market", where);
  check_usable(x);
  if (x.ndim() != 2)
    throw ShapeError(call_text() + ": a Matrix Market file is a matrix, the array has the shape " +
                     to_string(x.shape()) + "; reshape it to two dims");
  if (x.dtype() == uint64)
    throw DtypeError(call_text() + ": the format has no uint64; use astype int64 or float64");
  save_text(path, options.coordinate ? ", coordinate" : ", array", x, options.coordinate ? 0 : 1,
            options.coordinate ? nonzero_entries(x) : all_entries(x));
}

}  // namespace tessera::io
