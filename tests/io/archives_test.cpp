// .npz and .safetensors: files as other programs write them, byte by byte, and our own.
#include "io/archive/safetensors_header.hpp"
#include "io/archive/zip.hpp"
#include "io/folder.hpp"

namespace tessera::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Npz : public InFolder {};
class Safetensors : public InFolder {};

std::string from_hex(std::string_view digits) {
  std::string bytes;
  const auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(value(digits[i]) * 16 + value(digits[i + 1]));
  return bytes;
}
std::string bytes_of_file(const std::string& path) {
  comm::barrier(comm::world());
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

// NumPy 1.24: savez(f, a=int32 [1 2 3], b=asfortranarray([[1.5, -2], [3, inf]])), then savez_compressed.
const std::string numpys = from_hex(
    "504b030414000000000000002100ebc02b048c0000008c00000005001400612e6e7079010010008c000000000000008c"
    "00000000000000934e554d5059010076007b276465736372273a20273c6934272c2027666f727472616e5f6f72646572"
    "273a2046616c73652c20277368617065273a2028332c292c207d20202020202020202020202020202020202020202020"
    "20202020202020202020202020202020202020202020202020202020202020202020202020200a010000000200000003"
    "000000504b030414000000000000002100b9e3fed5a0000000a000000005001400622e6e707901001000a00000000000"
    "0000a000000000000000934e554d5059010076007b276465736372273a20273c6638272c2027666f727472616e5f6f72"
    "646572273a20547275652c20277368617065273a2028322c2032292c207d202020202020202020202020202020202020"
    "20202020202020202020202020202020202020202020202020202020202020202020202020202020200a000000000000"
    "f83f000000000000084000000000000000c0000000000000f07f504b0102140314000000000000002100ebc02b048c00"
    "00008c000000050000000000000000000000800100000000612e6e7079504b0102140314000000000000002100b9e3fe"
    "d5a0000000a00000000500000000000000000000008001c3000000622e6e7079504b0506000000000200020066000000"
    "9a0100000000");
const std::string numpys_deflated = from_hex(
    "504b030414000000080000002100ebc02b044d0000008c00000005001400612e6e7079010010008c000000000000004d"
    "000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9369a2aea3a09e965f54529498179f5f94920a"
    "12774bcc294e058a17672416a402f91ac63a9a3a0ab50a14002e46060606262066066200504b03041400000008000000"
    "2100b9e3fed555000000a000000005001400622e6e707901001000a00000000000000055000000000000009bec17ea1b"
    "10c9c850c650ad9e925a9c5ca46ea5a06e9366a1aea3a09e965f54529498179f5f94920a120f292a4d050a17672416a4"
    "02b91a463a0a469a3a0ab50ae4032e0630f8610fa1391c2034c30108f5a11e00504b0102140314000000080000002100"
    "ebc02b044d0000008c000000050000000000000000000000800100000000612e6e7079504b0102140314000000080000"
    "002100b9e3fed555000000a0000000050000000000000000000000800184000000622e6e7079504b0506000000000200"
    "020066000000100100000000");

TEST_F(Npz, what_numpy_wrote_is_read) {
  for (const auto& bytes : {numpys, numpys_deflated}) {
    const auto file = put("n.npz", bytes);
    const Array a = io::load_npz(file, "a", all_rows());
    EXPECT_EQ(a.sharding(), all_rows());
    EXPECT_EQ(a.dtype(), int32);
    EXPECT_THAT(to_vector<int>(a), ElementsAre(1, 2, 3));
    const double inf = std::numeric_limits<double>::infinity();
    EXPECT_THAT(to_vector<double>(io::load_npz(file, "b")), ElementsAre(1.5, -2, 3, inf));
  }
}

TEST_F(Npz, info_names_the_arrays_without_reading_them) {
  const auto found = io::npz_info(put("n.npz", numpys_deflated));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found.at("a").shape, (Shape{3}));
  EXPECT_EQ(found.at("b").dtype, float64);
  EXPECT_EQ(found.at("b").detail, "npy 1.0, Fortran order, deflated");
}

TEST_F(Npz, comes_back_under_any_sharding_from_any_sharding) {
  std::mt19937 random(11);
  const std::vector<Shape> shapes = {{}, {11}, {5, 7}, {0, 4}, {4, 3, 5}};
  for (int n = 0; n < 6; ++n) {
    std::map<std::string, Array> arrays;
    for (const auto& shape : shapes) {
      const auto sharding = random_sharding(random, random_mesh(random), shape.ndim());
      const Array x = reshape(arange(static_cast<int>(shape.elements())), shape) - 3;
      arrays["of " + to_string(shape)] = n % 2 == 0 ? x : device_put(x, sharding);
    }
    io::save_npz(path("x.npz"), arrays);
    for (const auto& [name, x] : arrays) {
      const auto sharding = random_sharding(random, random_mesh(random), x.ndim());
      const Array y = io::load_npz(path("x.npz"), name, sharding);
      ASSERT_EQ(y.sharding(), sharding);
      ASSERT_EQ(to_vector<int>(y), to_vector<int>(x)) << name;
    }
  }
  EXPECT_THAT(entries(), ElementsAre("x.npz"));
}

// numpy.load accepts files that begin with a member or with the plain end record.
TEST_F(Npz, an_archive_of_no_arrays_is_22_bytes) {
  io::save_npz(path("none.npz"), {});
  EXPECT_EQ(bytes_of_file(path("none.npz")), std::string("PK\5\6") + std::string(18, '\0'));
  EXPECT_TRUE(io::npz_info(path("none.npz")).empty());
}

// Ranks' checksums are combined to the file's: zipfile and numpy.load reject a wrong one.
TEST_F(Npz, checksums_are_of_the_members_bytes) {
  const Array x = device_put(reshape(arange(1000), {100, 10}), all_rows());
  io::save_npz(path("x.npz"), {{"x", x}, {"empty", zeros({0})}});
  const std::string bytes = bytes_of_file(path("x.npz"));
  const auto end = io::parse_zip_end(bytes, static_cast<std::int64_t>(bytes.size()));
  const auto members =
      io::parse_zip_directory(std::string_view(bytes).substr(static_cast<std::size_t>(end.offset),
                                                             static_cast<std::size_t>(end.bytes)),
                              end);
  ASSERT_EQ(members.size(), 2u);
  for (const auto& member : members) {
    const auto start = static_cast<std::size_t>(io::parse_zip_local(
        std::string_view(bytes).substr(static_cast<std::size_t>(member.header),
                                       static_cast<std::size_t>(io::zip_local_bytes(member, end))),
        member, end));
    std::uint32_t crc = 0xffffffff;  // the polynomial of ISO 3309, bit by bit
    for (std::size_t i = 0; i < static_cast<std::size_t>(member.bytes); ++i) {
      crc ^= static_cast<unsigned char>(bytes[start + i]);
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320U : 0U);
    }
    EXPECT_EQ(member.crc, ~crc) << member.name;
  }
}

std::string error_of(const std::function<void()>& call) { return text_of_error<IoError>(call); }

TEST_F(Npz, what_is_wrong_is_refused_with_path_and_reason) {
  const auto refusal = [&](const std::string& bytes) {
    const auto file = put("bad.npz", bytes);
    const auto text = error_of([&] { io::load_npz(file, "a"); });
    EXPECT_THAT(text, HasSubstr("bad.npz")) << text;
    return text;
  };
  EXPECT_THAT(refusal(""), HasSubstr("it has no end record"));
  EXPECT_THAT(refusal("hello"), HasSubstr("it has no end record"));
  EXPECT_THAT(refusal(numpys.substr(0, 400)), HasSubstr("it has no end record"));
  EXPECT_THAT(refusal(numpys.substr(100)), HasSubstr("its directory would lie beyond its end"));
  auto other = numpys_deflated;
  other[80] = static_cast<char>(other[80] ^ 1);  // in the data of a
  EXPECT_THAT(refusal(other), HasSubstr("has a damaged member 'a.npy'"));
  auto method = numpys;
  method[0x19a + 10] = 14;
  EXPECT_THAT(refusal(method), HasSubstr("packed by method 14"));
  auto name = numpys;
  name[30] = 'c';  // name of the first member in its local header
  EXPECT_THAT(refusal(name), HasSubstr("the member 'a.npy' has another name in its header"));
  auto overlap = numpys;
  overlap[28] = static_cast<char>(overlap[28] + 8);  // extra bytes of the first member's header
  EXPECT_THAT(refusal(overlap), HasSubstr("the member 'a.npy' reaches into the next member"));
  auto version = numpys;
  version[0x19a + 6] = 84;
  EXPECT_THAT(refusal(version), HasSubstr("in a form of zip version 84"));
  auto fewer = numpys;
  fewer[fewer.size() - 12] = fewer[fewer.size() - 14] = 1;  // members in the end record
  EXPECT_THAT(refusal(fewer), HasSubstr("bytes stand behind the 1 records"));
  EXPECT_THAT(refusal("x" + numpys.substr(1)), HasSubstr("it does not begin with a member"));
  const auto file = put("n.npz", numpys);
  EXPECT_THAT(error_of([&] { io::load_npz(file, "aa"); }),
              HasSubstr("has no array 'aa'; it has 'a', 'b' (did you mean 'a'?)"));
}

// All ways to read: by rows, by columns, replicated, on a mesh of one, in Fortran order, a scalar.
TEST_F(Npz, one_bit_that_differs_in_a_stored_member_is_refused) {
  const Array x = device_put(reshape(arange(4000), {40, 100}), all_rows());
  io::save_npz(path("x.npz"), {{"one", full({}, 7)}, {"x", x}});
  const std::string whole = bytes_of_file(path("x.npz"));
  const Sharding columns = NamedSharding(make_mesh({device_count()}, {"x"}), P(None, "x"));
  const Sharding alone = NamedSharding(make_mesh({1}, {"x"}), P("x"));
  const std::vector<std::optional<Sharding>> layouts = {all_rows(), columns, alone, std::nullopt};
  const auto loaded = [&](const std::string& file, const std::string& name, const auto& layout) {
    return layout ? io::load_npz(file, name, *layout) : io::load_npz(file, name);
  };
  for (const auto& layout : layouts)
    EXPECT_EQ(to_vector<int>(loaded(path("x.npz"), "x", layout)), to_vector<int>(x));
  for (const std::size_t at : {whole.size() / 2, whole.size() - 700, std::size_t{500}}) {
    auto other = whole;
    other[at] = static_cast<char>(other[at] ^ 4);
    const auto file = put("bad.npz", other);
    for (const auto& layout : layouts)
      EXPECT_THAT(error_of([&] { loaded(file, "x", layout); }),
                  HasSubstr("has a damaged member 'x.npy': its checksum is another one"))
          << at;
    EXPECT_EQ(item<int>(io::load_npz(file, "one")), 7);
  }
  auto fortran = numpys;
  fortran[fortran.find("PK\1\2") - 3] ^= 1;  // in the last number of b
  const auto file = put("f.npz", fortran);
  EXPECT_THAT(error_of([&] { io::load_npz(file, "b"); }), HasSubstr("its checksum is another one"));
  EXPECT_THAT(error_of([&] { io::load_npz(file, "b", all_rows()); }),
              HasSubstr("its checksum is another one"));
}

// ---- safetensors ----

std::string safetensors(const std::string& json, const std::string& data) {
  std::string text;
  for (std::size_t i = 0; i < 8; ++i) text += static_cast<char>(json.size() >> (8 * i) & 255);
  return text + json + data;
}
std::string raw(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * 4};
}

TEST_F(Safetensors, a_file_of_the_format_is_read) {
  const auto file =
      put("m.safetensors",
          safetensors(
              "{\"__metadata__\":{\"format\":\"pt\"},\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],"
              "\"data_offsets\":[0,24]},\"n\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[24,32]}}  ",
              raw({1, 2, 3, 4, 5, 6}) + std::string("\7\0\0\0\0\0\0\0", 8)));
  EXPECT_THAT(to_vector<float>(io::load_safetensors(file, "w", all_rows())), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(item<std::int64_t>(io::load_safetensors(file, "n")), 7);
  EXPECT_EQ(io::safetensors_metadata(file).at("format"), "pt");
  EXPECT_EQ(io::safetensors_info(file).at("w").shape, (Shape{2, 3}));
}

TEST_F(Safetensors, half_precision_stays_what_it_is) {
  // F16: 1, -2, the largest, the smallest subnormal, inf, nan. BF16: 1, -2.5
  const auto file =
      put("h.safetensors", safetensors("{\"f\":{\"dtype\":\"F16\",\"shape\":[6],\"data_offsets\":[0,12]},"
                                       "\"b\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[12,16]}}",
                                       from_hex("003c00c0ff7b0100007c007e"
                                                "803f20c0")));
  EXPECT_EQ(io::load_safetensors(file, "f", all_rows()).dtype(), float16);
  EXPECT_EQ(io::load_safetensors(file, "b").dtype(), bfloat16);
  const auto f = to_vector<float>(io::load_safetensors(file, "f", all_rows()));
  EXPECT_THAT(std::vector<float>(f.begin(), f.begin() + 4), ElementsAre(1, -2, 65504, 0x1p-24f));
  EXPECT_TRUE(std::isinf(f[4]) && std::isnan(f[5]));
  EXPECT_THAT(to_vector<float>(io::load_safetensors(file, "b")), ElementsAre(1, -2.5f));
  const Array b = device_put(io::load_safetensors(file, "b"), all_rows());
  io::save_safetensors(path("again.safetensors"), {{"b", b}});
  EXPECT_EQ(io::safetensors_info(path("again.safetensors")).at("b").dtype, bfloat16);
  EXPECT_EQ(to_vector<float>(io::load_safetensors(path("again.safetensors"), "b")), to_vector<float>(b));
}

TEST_F(Safetensors, comes_back_with_its_texts) {
  const Array w = device_put(reshape(arange(77), {11, 7}), all_rows()),
              c = device_put(astype(arange(5), complex64), all_rows());
  io::save_safetensors(path("x.safetensors"), {{"w", w}, {"c", c}, {"b", array({true, false})}},
                       {{"made by", "a \"test\""}});
  EXPECT_EQ(to_vector<int>(io::load_safetensors(path("x.safetensors"), "w", all_rows())), to_vector<int>(w));
  EXPECT_EQ(to_vector<std::complex<float>>(io::load_safetensors(path("x.safetensors"), "c")),
            to_vector<std::complex<float>>(c));
  EXPECT_EQ(to_vector<bool>(io::load_safetensors(path("x.safetensors"), "b")),
            (std::vector<bool>{true, false}));
  EXPECT_EQ(io::safetensors_metadata(path("x.safetensors")).at("made by"), "a \"test\"");
  const auto bytes = bytes_of_file(path("x.safetensors"));
  EXPECT_EQ(static_cast<unsigned char>(bytes[0]) % 8, 0) << "the data begin at a multiple of 8";
}

TEST_F(Safetensors, what_is_wrong_is_refused_with_path_and_reason) {
  const auto refusal = [&](const std::string& bytes) {
    const auto file = put("bad.safetensors", bytes);
    const auto text = error_of([&] { io::load_safetensors(file, "w"); });
    EXPECT_THAT(text, HasSubstr("bad.safetensors")) << text;
    return text;
  };
  const auto with = [&](const std::string& entry, std::size_t bytes) {
    return refusal(safetensors("{" + entry + "}", std::string(bytes, '\0')));
  };
  EXPECT_THAT(refusal("abc"), HasSubstr("fewer than 8 bytes"));
  EXPECT_THAT(refusal(std::string(8, '\x7f')), HasSubstr("it claims a header of"));
  EXPECT_THAT(refusal(safetensors("[1]", "")), HasSubstr("no JSON object"));
  EXPECT_THAT(refusal(safetensors(std::string("{}\0{\"w\":1}", 10), "")), HasSubstr("no JSON object"));
  EXPECT_THAT(with("\"w\":1", 0), HasSubstr("describes no tensor"));
  EXPECT_THAT(with("\"w\":{\"dtype\":\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[0,1]}", 1),
              HasSubstr("as 'F8_E4M3', which tessera does not have"));
  EXPECT_THAT(with("\"w\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]}", 1),
              HasSubstr("negative"));
  EXPECT_THAT(with("\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,3]}", 3),
              HasSubstr("has 3 bytes for 'w' of shape (2,), which needs 2"));
  EXPECT_THAT(with("\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}", 3),
              HasSubstr("leaves a hole at byte 0"));
  EXPECT_THAT(with("\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
                   "\"v\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}",
                   3),
              HasSubstr("places two tensors at byte 1"));
  EXPECT_THAT(with("\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}", 3), HasSubstr("need 2"));
  EXPECT_THAT(with("\"w\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
                   "\"w\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}",
                   0),
              HasSubstr("has two entries 'w'"));
  const auto file = put("m.safetensors", safetensors("{\"wq\":{\"dtype\":\"U8\",\"shape\":[1],"
                                                     "\"data_offsets\":[0,1]}}",
                                                     "1"));
  EXPECT_THAT(error_of([&] { io::load_safetensors(file, "wk"); }),
              HasSubstr("has no tensor 'wk'; it has 'wq'"));
}

TEST_F(Safetensors, complex128_is_refused_when_it_is_saved) {
  EXPECT_THAT(text_of_error<DtypeError>([&] {
                io::save_safetensors(path("x.safetensors"), {{"z", zeros({2}, complex128)}});
              }),
              HasSubstr("'z' is complex128, which the format does not have"));
}

}  // namespace
}  // namespace tessera::test
