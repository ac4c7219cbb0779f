// Matrix Market (NIST exchange formats), the text alone: a banner, then numbers in column order, or
// (row, column, value) lines. Pure: what is wrong is an IoError that names the file as it was given, and the
// line.
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
  std::int64_t body = 0;  // where the first value's line begins, in bytes
};

// The entries that one rank parses from a file of coordinates. Rows and columns count from 0; a symmetric
// matrix has its entries on both sides of the diagonal.
struct MatrixMarketEntries {
  std::vector<std::int64_t> rows, columns;
  std::vector<std::byte> values;
  std::int64_t lines = 0;  // of the file
};
// `head` holds the banner and the sizes, and may end anywhere behind them.
MatrixMarketBanner matrix_market_banner(std::string_view head, const std::string& name);
// Whole lines of the body; the first of them is at `from_byte` of the file, which errors say.
MatrixMarketEntries matrix_market_entries(std::string_view lines, const MatrixMarketBanner&,
                                          const std::string& name, std::int64_t from_byte);

// Views of a text that the caller keeps.
class MatrixMarketText {
 public:
  // `name` opens the messages: "load_matrix_market: 'm.mtx'".
  MatrixMarketText(std::string_view text, std::string name);
  const MatrixMarketBanner& banner() const { return banner_; }
  // The box of the matrix, dense; entries that stand twice are added up. The whole text is checked.
  void read(const Box&, std::byte* out) const;

 private:
  std::string_view text_;
  std::string name_;
  MatrixMarketBanner banner_;
};

}  // namespace tessera::io
