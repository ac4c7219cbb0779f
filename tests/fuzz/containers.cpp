// Parsers of files with several arrays, and of tables as text.
#include <tessera/error.hpp>

#include <zlib.h>

#include <cstring>
#include <stdexcept>

#include "fuzz/accepts.hpp"
#include "fuzz/parsers.hpp"
#include "fuzz/words.hpp"
#include "io/archive/npz_archive.hpp"
#include "io/archive/safetensors_header.hpp"
#include "io/npy_file.hpp"
#include "io/text/csv_text.hpp"
#include "sparse/stored.hpp"
#include "types/checked.hpp"

namespace tessera::test {
namespace {

using namespace std::string_literals;

bool accepts(const std::function<void()>& parse) { return test::accepts<IoError>(parse); }
std::string bytes_of(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

// --- .npz: the archive, and the header of each array in it -----------------------------------------------
void check_header(const io::File& file, std::int64_t start, std::int64_t bytes) {
  const auto header = io::read_npy_header(file, start, bytes);
  const auto needed = checked_bytes(header.shape, header.dtype, "fuzz");
  require(header.data_offset >= start && header.data_offset + needed + header.bytes_behind == start + bytes,
          "the values lie in their member");
}
bool parse_npz(std::string_view bytes) {
  return accepts([&] {
    const io::NpzArchive archive(io::File("load_npz", "a.npz", std::string(bytes)));
    for (const auto& member : archive.members()) {
      const auto name = io::NpzArchive::array_name(member.name);
      require(io::NpzArchive::array_name(archive.find(name).name) == name, "its arrays are found");
      const auto start = archive.data_of(member);
      require(start >= 0 && start + member.stored_bytes <= archive.file().bytes(), "it lies in the file");
      if (!member.is_deflated) {
        check_header(archive.file(), start, member.bytes);
        continue;
      }
      require(member.bytes <= 1096 + 1032 * member.stored_bytes, "it claims no more than deflate can pack");
      const io::File unpacked("load_npz", "a.npz", archive.inflated(member));
      require(unpacked.bytes() == member.bytes, "it unpacks to its size");
      check_header(unpacked, 0, member.bytes);
    }
  });
}
std::string deflated(const std::string& content) {
  z_stream stream{};
  std::string packed(content.size() + 64, '\0');
  if (deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) return {};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}
std::string npy_file(const Shape& shape, Dtype dtype) {
  return io::npy_header_text(shape, dtype) + std::string(checked_bytes(shape, dtype, "fuzz"), '\7');
}
// An archive as numpy writes small ones: 32-bit sizes, deflated or not.
std::string small_archive(const std::string& name, const std::string& content, bool packs) {
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
  const auto stored = packs ? deflated(content) : content;
  const auto facts = bytes_of(20, 2) + bytes_of(0, 2) + bytes_of(packs ? 8 : 0, 2) + bytes_of(0x210000, 4) +
                     bytes_of(crc, 4) + bytes_of(stored.size(), 4) + bytes_of(content.size(), 4) +
                     bytes_of(name.size(), 2) + bytes_of(0, 2);
  const auto local = "PK\3\4" + facts + name + stored;
  const auto record = "PK\1\2" + bytes_of(20, 2) + facts + std::string(14, '\0') + name;
  return local + record + "PK\5\6" + bytes_of(0, 4) + bytes_of(1, 2) + bytes_of(1, 2) +
         bytes_of(record.size(), 4) + bytes_of(local.size(), 4) + bytes_of(0, 2);
}
// An archive as io::save_npz writes it: 64-bit sizes.
std::string large_archive(const std::vector<std::pair<std::string, std::string>>& files) {
  std::vector<io::ZipMember> members;
  std::string text;
  for (const auto& [name, content] : files) {
    const auto size = static_cast<std::int64_t>(content.size());
    const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
    members.push_back(
        {name, false, static_cast<std::uint32_t>(crc), size, size, static_cast<std::int64_t>(text.size())});
    text += io::zip_local_header(members.back()) + content;
  }
  return text + io::zip_directory(members, static_cast<std::int64_t>(text.size()));
}
Parser npz() {
  const auto a = npy_file({3, 4}, float32), b = npy_file({}, complex128), c = npy_file({0, 7}, bool_);
  return {"npz",
          {small_archive("a.npy", a, false), small_archive("a.npy", a, true),
           large_archive({{"a.npy", a}, {"b.npy", b}, {"c", c}}), large_archive({})},
          {"PK\1\2",
           "PK\3\4",
           "PK\5\6",
           "PK\6\6",
           "PK\6\7",
           "\xff\xff\xff\xff",
           "\xff\xff",
           "\xff",
           "\0"s,
           "\0\0\0\0"s,
           "\0\0\0\0\0\0\0\0"s,
           "\1\0"s,
           "\1\0\x10\0"s,
           "\x08\0"s,
           "\xff\xff\xff\xff\xff\xff\xff\x3f",
           "\xff\xff\xff\xff\xff\xff\xff\xff",
           "a.npy",
           ".npy",
           "\x93NUMPY",
           "9223372036854775807",
           "\x1b[2J",
           "../"},
          parse_npz};
}

// --- sparse matrices of SciPy in .npz ------------------------------------------------------------------------
// Shares of the entries are those of the whole, each within the matrix.
void check_shares(const sparse::MatrixFile& m) {
  constexpr std::int64_t parts = 3;
  const auto rows = m.shape[0];
  if (rows > std::int64_t{1} << 62) return;  // refused by their size before they are shared
  const auto whole = sparse::read_share(m, {0, rows}, 0, 1);
  std::size_t found = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    const Range own = block_range(rows, parts, part);
    const auto share = sparse::read_share(m, own, part, parts);
    require(share.rows.size() == share.columns.size() &&
                share.values.size() == share.rows.size() * itemsize(share.dtype),
            "an entry has a row, a column and a value");
    for (std::size_t i = 0; i < share.rows.size(); ++i)
      require(share.rows[i] >= 0 && share.rows[i] < rows && share.columns[i] >= 0 &&
                  share.columns[i] < m.shape[1],
              "an entry lies in the matrix");
    found += share.rows.size();
  }
  require(found == whole.rows.size(), "the shares are the whole");
}
bool parse_sparse(std::string_view bytes) {
  return accepts([&] {
    io::File file("load_npz", "m.npz", std::string(bytes));
    check_shares(sparse::stored_npz("m.npz", std::make_shared<const io::NpzArchive>(std::move(file))));
  });
}
template <class T> std::string npy_of(Dtype dtype, const Shape& shape, const std::vector<T>& values) {
  return io::npy_header_text(shape, dtype) +
         std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}
std::string ints(const std::vector<std::int32_t>& values) {
  return npy_of(int32, {std::ssize(values)}, values);
}
Parser sparse_npz() {
  const std::string shape = npy_of<std::int64_t>(int64, {2}, {4, 6});
  const auto text = [](const std::string& format) {  // as numpy.save writes bytes
    std::string header = "{'descr': '|S3', 'fortran_order': False, 'shape': (), }";
    header.resize(117, ' ');
    return "\x93NUMPY\1\0"s + bytes_of(header.size() + 1, 2) + header + "\n" + format;
  };
  const auto matrix = [&](const std::string& format, const std::string& pointers, const std::string& data) {
    return large_archive({{"indices.npy", ints({1, 0, 2})},
                          {"indptr.npy", pointers},
                          {"format.npy", text(format)},
                          {"shape.npy", shape},
                          {"data.npy", data}});
  };
  const auto floats = npy_of<float>(float32, {3}, {1, 2, 3});
  const auto blocks = npy_of<float>(float32, {3, 2, 2}, std::vector<float>(12, 1));
  return {"sparse_npz",
          {matrix("csr", ints({0, 1, 1, 3, 3}), floats), matrix("csc", ints({0, 1, 1, 3, 3, 3, 3}), floats),
           matrix("bsr", ints({0, 2, 3}), blocks),
           large_archive({{"row.npy", ints({3, 0, 1})},
                          {"col.npy", ints({5, 0, 1})},
                          {"format.npy", text("coo")},
                          {"shape.npy", shape},
                          {"data.npy", floats}})},
          {"csr",
           "csc",
           "bsr",
           "coo",
           "dia",
           "\xff\xff\xff\xff",
           "\xff\xff\xff\xff\xff\xff\xff\x7f",
           "\0"s,
           "\0\0\0\0"s,
           "\1\0\0\0"s,
           "\6\0\0\0"s,
           "'<i4'",
           "'<f4'",
           "'<i8'",
           "'<u8'",
           "'|b1'",
           "'<c8'",
           "(3,)",
           "(2,)",
           "(3, 2, 2)",
           "(3, 0, 2)",
           "(0,)",
           "(5,)",
           "()",
           "9223372036854775807",
           "indptr",
           "indices",
           "data"},
          parse_sparse};
}

// --- .safetensors ------------------------------------------------------------------------------------------
// Readers rely on this: each byte after the header belongs to one tensor, and each tensor has the bytes of
// its shape.
void check_tensors(const io::SafetensorsHeader& header, std::int64_t first, std::int64_t end) {
  std::int64_t total = 0;
  for (const auto& [name, tensor] : header.tensors) {
    require(first <= tensor.begin && tensor.begin <= tensor.end && tensor.end <= end,
            "a tensor lies in its file");
    const auto bytes = checked_bytes(tensor.shape, itemsize(tensor.dtype), "fuzz");
    require(bytes == tensor.end - tensor.begin, "a tensor has the bytes of its shape");
    total += bytes;
    for (const auto& [other, beside] : header.tensors)
      require(name == other || tensor.end <= beside.begin || beside.end <= tensor.begin,
              "no two tensors overlap");
  }
  require(total == end - first, "each byte belongs to a tensor");
}
bool parse_safetensors_file(std::string_view file) {
  return accepts([&] {
    const auto size = static_cast<std::int64_t>(file.size());
    const auto length = io::parse_safetensors_prefix(file.substr(0, 8), size);
    require(length >= 0 && 8 + length <= size, "the header lies in the file");
    check_tensors(io::parse_safetensors(file.substr(8, static_cast<std::size_t>(length)), size), 8 + length,
                  size);
  });
}
// Half of the inputs get a correct length before the changed header, and more bytes after it.
bool parse_safetensors_input(std::string_view input) {
  const bool as_it_is = parse_safetensors_file(input);
  const auto open = input.find('{'), close = input.rfind('}');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return as_it_is;
  const std::string json(input.substr(open, close + 1 - open));
  std::string fitted = bytes_of(json.size(), 8) + json;
  fitted.append(24, '\0');  // needed by the seeds' tensors
  return parse_safetensors_file(fitted) || as_it_is;
}
Parser safetensors() {
  Parser parser{"safetensors", {}, {}, parse_safetensors_input};
  io::SafetensorsHeader one, two;
  one.tensors["w"] = {Shape{2, 3}, float32, 0, 24};
  two.tensors["a"] = {Shape{2, 2}, bfloat16, 0, 8};
  two.tensors["b"] = {Shape{}, float64, 8, 16};
  two.tensors["c"] = {Shape{0, 5}, bool_, 16, 16};
  two.tensors["d"] = {Shape{8}, int8, 16, 24};
  two.metadata["format"] = "pt";
  for (const auto& header : {one, two})
    parser.seeds.push_back(io::safetensors_header_text(header) + std::string(24, '\1'));
  parser.words = words_of(
      R"({|}|[|]|,|:|null|-1|0|8|16|24|1e3|true|9223372036854775807|"a"|"b"|"F16"|"F64"|18446744073709551615)"
      R"(|"I8"|"F8_E4M3"|"dtype"|"shape"|"data_offsets"|[0,24]|"__metadata__"|"\u001b"|4611686018427387904)"
      "|\xff|[[[[[[[[[[[[[[[[[[[[");
  parser.words.push_back("\0"s);
  return parser;
}

// --- CSV ---------------------------------------------------------------------------------------------------
bool parse_table(std::string_view text, const io::CsvOptions& options) {
  return accepts([&] {
    const io::File file("load_csv", "t.csv", std::string(text));
    const io::CsvText table(file, options);
    const auto rows = table.shape()[0], columns = table.shape()[1];
    require(rows >= 0 && columns >= 0, "no extent is negative");
    require(rows * columns <= file.bytes() + rows + 1, "no more numbers than the text has room for");
    require(table.header().empty() || static_cast<std::int64_t>(table.header().size()) == columns,
            "a column has a name");
    std::vector<std::byte> whole(
        static_cast<std::size_t>(checked_bytes(table.shape(), options.dtype, "fuzz")));
    table.read({{0, rows}, {0, columns}}, whole.data());
    // Reading only the lower right quarter gives the same values.
    const Box part = {{rows / 2, rows}, {columns / 2, columns}};
    const auto width = static_cast<std::int64_t>(itemsize(options.dtype));
    std::vector<std::byte> quarter(static_cast<std::size_t>(box_elements(part) * width));
    table.read(part, quarter.data());
    for (std::int64_t row = 0; row < part[0].size() && part[1].size() > 0; ++row)
      require(std::memcmp(quarter.data() + row * part[1].size() * width,
                          whole.data() + ((part[0].start + row) * columns + part[1].start) * width,
                          static_cast<std::size_t>(part[1].size() * width)) == 0,
              "a part has the values of the whole");
  });
}
bool parse_csv(std::string_view text) {
  const bool by_commas = parse_table(text, {.delimiter = ',', .dtype = float64});
  return parse_table(text, {.delimiter = ';', .dtype = int32}) || by_commas;
}
Parser csv() {
  return {"csv",
          {"1,2,3\n4,5,6\n", "x,\"y, z\",\"\"\"w\"\"\"\r\n1e3,-2.5,\r\n\r\n+3,nan,inf", "# a; b\n1;2\n-3;4\n",
           "\xef\xbb\xbf"
           "0.5, 1 , \"2\"\n",
           "7", ""},
          {",",
           ";",
           "\n",
           "\r\n",
           "\"",
           "\"\"",
           "#",
           " ",
           "\t",
           "-",
           "+",
           "nan",
           "inf",
           "1e999",
           "0x1p3",
           "9223372036854775807",
           "\xef\xbb\xbf",
           "\0"s,
           ",,,,,,,,",
           "\x1b[2J",
           "true"},
          parse_csv};
}

}  // namespace

std::vector<Parser> container_parsers() { return {npz(), sparse_npz(), safetensors(), csv()}; }

}  // namespace tessera::test
