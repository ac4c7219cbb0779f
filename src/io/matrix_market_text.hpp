// The text of Matrix Market files (NIST exchange formats): a banner, then numbers in column order, or (row,
// column, value) lines. Pure: errors are IoErrors with the given file name and the line.
#pragma once
#include <tessera/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "types/box.hpp"

namespace tessera::io {

struct MatrixMarketBanner {
  enum class Symmetry { general, symmetric, skew, hermitian };
  bool coordinate = false, pattern = false;
  Dtype dtype = float64;
  Symmetry symmetry = Symmetry::general;
  std::int64_t rows = 0, columns = 0, entries = 0;
  std::int64_t body = 0;  // offset of the first value's line, in bytes
};

// The entries that one rank parses from a coordinate file. Indices count from 0; a symmetric matrix has its
// entries on both sides of the diagonal.
struct MatrixMarketEntries {
  std::vector<std::int64_t> rows, columns;
  std::vector<std::byte> values;
  std::int64_t lines = 0;  // of the file
};
// `head` holds the banner and the sizes, and may end anywhere after them.
MatrixMarketBanner matrix_market_banner(std::string_view head, const std::string& name);
// `lines` are whole lines of the body that begin at `from_byte` of the file; errors report that offset.
MatrixMarketEntries matrix_market_entries(std::string_view lines, const MatrixMarketBanner&,
                                          const std::string& name, std::int64_t from_byte);

// Views a text owned by the caller.
class MatrixMarketText {
 public:
  // `name` opens the messages: "load_matrix_market: 'm.mtx'".
  MatrixMarketText(std::string_view text, std::string name);
  const MatrixMarketBanner& banner() const { return banner_; }
  // Reads the box of the matrix, dense; duplicate entries are added. The whole text is checked.
  void read(const Box&, std::byte* out) const;

 private:
  std::string_view text_;
  std::string name_;
  MatrixMarketBanner banner_;
};

}  // namespace tessera::io
