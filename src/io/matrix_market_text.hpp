// Matrix Market (NIST exchange formats), the text alone: a banner, then numbers in column order, or
// (row, column, value) lines. Pure: what is wrong is an IoError that names the file as it was given, and the
// line.
#pragma once
#include <tessera/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "types/box.hpp"

namespace tessera::io {

struct MatrixMarketBanner {
  enum class Symmetry { general, symmetric, skew, hermitian };
  bool coordinate = false, pattern = false;
  Dtype dtype = float64;
  Symmetry symmetry = Symmetry::general;
  std::int64_t rows = 0, columns = 0, entries = 0;
};

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
