#include "io/npy_header.hpp"

#include <tessera/error.hpp>

#include <bit>
#include <cstring>
#include <limits>
#include <optional>

#include "base/text.hpp"

namespace tessera::io {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::int64_t longest_header = std::int64_t{1} << 20;
constexpr std::size_t most_dims = 64;  // NumPy 2's limit
constexpr bool little = std::endian::native == std::endian::little;

struct Kind {
  const char* code;
  Dtype dtype;
};
constexpr Kind kinds[] = {
    {"b1", bool_},       {"i1", int8},    {"i2", int16},   {"i4", int32},
    {"i8", int64},       {"u1", uint8},   {"u2", uint16},  {"u4", uint32},
    {"u8", uint64},      {"f4", float32}, {"f8", float64}, {"c8", complex64},
    {"c16", complex128}, {"f2", float16}, {"V2", bfloat16}};  // V2: as ml_dtypes writes it

// The part of a header shown in an error: it may be long and have any content.
std::string header_excerpt(std::string_view text) {
  constexpr std::size_t most = 200;
  return text.size() <= most ? in_quotes(text) : in_quotes(text.substr(0, most)) + " ...";
}

// Parses the dict literal, which is ASCII (version 3: UTF-8) and may have spaces anywhere.
class DictReader {
 public:
  explicit DictReader(std::string_view text) : text_(text) {}
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c))
      throw IoError("has a damaged header: a " + in_quotes(std::string(1, c)) + " is missing at byte " +
                    std::to_string(at_) + " of " + shown());
  }
  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"')
      throw IoError("has a damaged header: a text is missing at byte " + std::to_string(at_) + " of " +
                    shown());
    const auto end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos)
      throw IoError("has a damaged header: a text does not end in " + shown());
    const auto result = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return std::string(result);
  }
  bool boolean() {
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}})
      if (peek() != '\0' && text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    throw IoError("has a damaged header: 'fortran_order' is neither True nor False in " + shown());
  }
  std::int64_t extent() {
    if (peek() == '-') throw IoError("has a negative extent in its header " + shown());
    std::int64_t value = 0;
    const auto first = at_;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (value > (std::numeric_limits<std::int64_t>::max() - 9) / 10)
        throw IoError("has an extent beyond 2^63 in its header " + shown());
      value = value * 10 + (text_[at_] - '0');
    }
    if (at_ == first)
      throw IoError("has a damaged header: a number is missing at byte " + std::to_string(at_) + " of " +
                    shown());
    if (text_[first] == '0' && at_ - first > 1)
      throw IoError("has a damaged header: a number begins with 0 at byte " + std::to_string(first) + " of " +
                    shown());
    accept('L');  // Python 2's suffix of long integers
    return value;
  }
  bool at_end() {
    skip();
    return at_ == text_.size();
  }
  std::string shown() const { return header_excerpt(text_); }

 private:
  void skip() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  std::string_view text_;
  std::size_t at_ = 0;
};

void read_descr(DictReader& reader, NpyHeader& header) {
  if (reader.peek() == '[')
    throw IoError(
        "holds structured records; tessera reads arrays of plain numbers: save each field as an array of its "
        "own");
  const std::string descr = reader.string();
  if (descr.find('O') != std::string::npos)
    throw IoError("holds Python objects (" + header_excerpt(descr) +
                  "), which would have to be unpickled; save it with a numeric dtype");
  const char order = descr.empty() ? '\0' : descr[0];
  const std::string code =
      order == '<' || order == '>' || order == '|' || order == '=' ? descr.substr(1) : descr;
  for (const auto& kind : kinds)
    if (code == kind.code) {
      header.dtype = kind.dtype;
      header.swap_bytes = itemsize(kind.dtype) > 1 && ((order == '<' && !little) || (order == '>' && little));
      return;
    }
  throw IoError("has the dtype " + header_excerpt(descr) +
                ", which tessera does not have; convert it with NumPy's astype to bool, (u)int8-64, "
                "float16/32/64 or complex64/128");
}

Shape read_shape(DictReader& reader) {
  reader.expect('(');
  std::vector<std::int64_t> extents;
  while (!reader.accept(')')) {
    extents.push_back(reader.extent());
    if (extents.size() > most_dims)
      throw IoError("claims more than " + std::to_string(most_dims) +
                    " dimensions in its header; it is damaged: write it again");
    if (reader.accept(',')) continue;
    if (extents.size() == 1) reader.expect(',');  // (3) is a number, (3,) is a shape
    reader.expect(')');
    break;
  }
  return Shape(std::move(extents));
}

}  // namespace

namespace {

std::string header_text(const std::string& descr, const Shape& shape) {
  std::string dict =
      "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + to_string(shape) + ", }";
  std::size_t length_bytes = 2;
  if (dict.size() + 64 > 65535) length_bytes = 4;
  const std::size_t fixed = magic.size() + 2 + length_bytes;
  while ((fixed + dict.size() + 1) % 64 != 0) dict += ' ';
  dict += '\n';
  std::string text(magic);
  text += length_bytes == 2 ? '\1' : '\2';
  text += '\0';
  for (std::size_t i = 0; i < length_bytes; ++i) text += static_cast<char>(dict.size() >> (8 * i) & 255);
  return text + dict;
}

}  // namespace

std::string npy_header_text(const Shape& shape, Dtype dtype) {
  std::string code;
  for (const auto& kind : kinds)
    if (kind.dtype == dtype) code = kind.code;
  const char order = itemsize(dtype) == 1 ? '|' : little ? '<' : '>';
  return header_text(order + code, shape);
}
std::string npy_header_of_text(std::size_t bytes) { return header_text("|S" + std::to_string(bytes), {}); }

NpyPrefix parse_npy_prefix(std::string_view first, std::int64_t file_bytes) {
  if (file_bytes == 0) throw IoError("is empty; a .npy file begins with the 6 bytes \\x93NUMPY");
  if (first.size() < magic.size() || first.substr(0, magic.size()) != magic) {
    if (first.substr(0, 4) == std::string_view("PK\3\4"))
      throw IoError("is an .npz archive; unpack it (unzip) and load the .npy files inside");
    if (first.starts_with("\x1f\x8b"))
      throw IoError("is packed by gzip, so that ranks cannot read parts of it; unpack it with gunzip");
    throw IoError(
        "does not begin with \\x93NUMPY: it is not a .npy file; save it with numpy.save or io::save_npy");
  }
  if (first.size() < 10) throw IoError("ends inside its header; it was cut short: copy or write it again");
  NpyPrefix prefix;
  prefix.major = static_cast<unsigned char>(first[6]);
  prefix.minor = static_cast<unsigned char>(first[7]);
  if (prefix.major < 1 || prefix.major > 3 || prefix.minor != 0)
    throw IoError("has .npy version " + std::to_string(prefix.major) + "." + std::to_string(prefix.minor) +
                  "; versions 1.0, 2.0 and 3.0 are known");
  const std::size_t length_bytes = prefix.major == 1 ? 2 : 4;
  if (first.size() < 8 + length_bytes)
    throw IoError("ends inside its header; it was cut short: copy or write it again");
  for (std::size_t i = 0; i < length_bytes; ++i)
    prefix.dict_bytes |= std::int64_t{static_cast<unsigned char>(first[8 + i])} << (8 * i);
  prefix.dict_offset = static_cast<std::int64_t>(8 + length_bytes);
  if (prefix.dict_bytes > longest_header)
    throw IoError("claims a header of " + std::to_string(prefix.dict_bytes) +
                  " bytes; it is damaged: copy or write it again");
  if (prefix.dict_offset + prefix.dict_bytes > file_bytes)
    throw IoError("has " + std::to_string(file_bytes) + " bytes, but its header alone claims " +
                  std::to_string(prefix.dict_offset + prefix.dict_bytes) +
                  "; it was cut short: copy or write it again");
  return prefix;
}

NpyHeader parse_npy_dict(std::string_view dict, const NpyPrefix& prefix) {
  NpyHeader header;
  header.major = prefix.major;
  header.minor = prefix.minor;
  header.data_offset = prefix.dict_offset + prefix.dict_bytes;
  DictReader reader(dict);
  std::optional<Shape> shape;
  bool has_descr = false, has_order = false;
  reader.expect('{');
  while (!reader.accept('}')) {
    const std::string key = reader.string();
    reader.expect(':');
    const bool again =
        (key == "descr" && has_descr) || (key == "fortran_order" && has_order) || (key == "shape" && shape);
    if (again) throw IoError("has the key " + header_excerpt(key) + " twice in its header");
    if (key == "descr")
      read_descr(reader, header), has_descr = true;
    else if (key == "fortran_order")
      header.fortran_order = reader.boolean(), has_order = true;
    else if (key == "shape")
      shape = read_shape(reader);
    else
      throw IoError("has an unknown key " + header_excerpt(key) +
                    " in its header; there are descr, fortran_order and shape");
    if (reader.accept(',')) continue;
    reader.expect('}');
    break;
  }
  if (!reader.at_end())
    throw IoError("has a damaged header: something follows the dict in " + header_excerpt(dict));
  for (const auto& [found, key] : {std::pair<bool, const char*>{has_descr, "descr"},
                                   {has_order, "fortran_order"},
                                   {shape.has_value(), "shape"}})
    if (!found) throw IoError("has no key " + in_quotes(key) + " in its header " + header_excerpt(dict));
  header.shape = *shape;
  return header;
}

}  // namespace tessera::io
