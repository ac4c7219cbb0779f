#include "io/hdf5/library.hpp"

#include <tessera/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/text.hpp"

namespace tessera::io {

namespace {
std::recursive_mutex& one_thread() {
  static auto* mutex = new std::recursive_mutex;  // never destroyed: threads may outlive static objects
  return *mutex;
}
}  // namespace

Quiet::Quiet() : alone_(one_thread()) {
  H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5PLget_loading_state(&loads_);
  const char* const folder = std::getenv("HDF5_PLUGIN_PATH");
  if (folder == nullptr || *folder == '\0') H5PLset_loading_state(0);
}
Quiet::~Quiet() {
  H5PLset_loading_state(loads_);
  H5Eset_auto2(H5E_DEFAULT, print_, data_);
}

std::string hdf5_reason() {
  std::string text;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_DOWNWARD,
      [](unsigned, const H5E_error2_t* error, void* out) {
        if (error->desc != nullptr) *static_cast<std::string*>(out) = error->desc;
        return herr_t{0};
      },
      &text);
  if (text.empty()) return "the HDF5 library gives no reason";
  const std::string safe = in_quotes(text);  // the text may contain names from the file
  return safe.substr(1, safe.size() - 2);
}

Handle hdf5_opened(const std::string& path, unsigned mode) {
  return Handle(uninterrupted([&] {
                  errno = 0;
                  return H5Fopen(path.c_str(), mode, H5P_DEFAULT);
                }),
                H5Fclose);
}
Handle hdf5_created(const std::string& path) {
  return Handle(uninterrupted([&] {
                  errno = 0;
                  return H5Fcreate(path.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT);
                }),
                H5Fclose);
}

void Hdf5Source::fail(const std::string& facts, const std::string& mend) const {
  throw IoError(call + ": " + in_quotes(path) + " " + facts + "; " + mend);
}

void refuse_netcdf3(const Hdf5Source& source, const File& file) {
  char first[3] = {};
  if (file.bytes() < 3) return;
  file.read(first, 3, 0);
  if (std::string_view(first, 3) == "CDF")
    source.fail("is a file of netCDF-3, which tessera does not read", "convert it with nccopy -k nc4");
}

namespace {

Handle complex_type(hid_t part, std::size_t width) {
  Handle type(H5Tcreate(H5T_COMPOUND, 2 * width), H5Tclose);
  H5Tinsert(type, "r", 0, part);
  H5Tinsert(type, "i", width, part);
  return type;
}
// Whether an enumeration is that of h5py's truth values: FALSE = 0, TRUE = 1.
bool is_bool_type(hid_t type) {
  if (H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2) return false;
  const Quiet quiet;
  std::int8_t no = -1, yes = -1;
  return H5Tenum_valueof(type, "FALSE", &no) >= 0 && H5Tenum_valueof(type, "TRUE", &yes) >= 0 && no == 0 &&
         yes == 1;
}
Handle bool_type() {
  Handle type(H5Tenum_create(H5T_NATIVE_INT8), H5Tclose);
  const std::int8_t no = 0, yes = 1;
  H5Tenum_insert(type, "FALSE", &no);
  H5Tenum_insert(type, "TRUE", &yes);
  return type;
}
// A 16-bit float format: sign, exponent, fraction. float16 is what h5py writes, bfloat16 a type that HDF5's
// own conversions read as float.
struct HalfFields {
  std::size_t exponent_bits, fraction_bits;
  bool operator==(const HalfFields&) const = default;
};
constexpr HalfFields bfloat16_fields{8, 7}, float16_fields{5, 10};

Handle half_type(const HalfFields& fields) {
  Handle type(H5Tcopy(H5T_NATIVE_FLOAT), H5Tclose);
  H5Tset_fields(type, 15, fields.fraction_bits, fields.exponent_bits, 0, fields.fraction_bits);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, (std::size_t{1} << (fields.exponent_bits - 1)) - 1);
  return type;
}
HalfFields half_fields_of(hid_t type) {
  std::size_t sign = 0, exponent = 0, fraction = 0;
  HalfFields fields{};
  H5Tget_fields(type, &sign, &exponent, &fields.exponent_bits, &fraction, &fields.fraction_bits);
  return fields;
}
}  // namespace

Handle hdf5_memory_type(Dtype dtype) {
  const hid_t plain[] = {-1,
                         H5T_NATIVE_INT8,
                         H5T_NATIVE_INT16,
                         H5T_NATIVE_INT32,
                         H5T_NATIVE_INT64,
                         H5T_NATIVE_UINT8,
                         H5T_NATIVE_UINT16,
                         H5T_NATIVE_UINT32,
                         H5T_NATIVE_UINT64,
                         H5T_NATIVE_FLOAT,
                         H5T_NATIVE_DOUBLE};
  if (dtype == bool_) return bool_type();
  if (is_half(dtype)) return half_type(dtype == bfloat16 ? bfloat16_fields : float16_fields);
  if (is_complex(dtype))
    return complex_type(dtype == complex64 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE, itemsize(dtype) / 2);
  return Handle(H5Tcopy(plain[dtype.code]), H5Tclose);
}

Dtype dtype_of_dataset(const Hdf5Source& source, hid_t dataset) {
  const Handle type(H5Dget_type(dataset), H5Tclose);
  const auto bytes = H5Tget_size(type);
  const int log2 = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : -1;
  const std::string mend = "tessera has bool, (u)int8-64, float16/32/64, bfloat16 and complex64/128";
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      if (log2 >= 0) return Dtype{(H5Tget_sign(type) == H5T_SGN_NONE ? 5 : 1) + log2};
      break;
    case H5T_FLOAT:
      if (log2 == 2) return float32;
      if (log2 == 3) return float64;
      if (log2 == 1 && half_fields_of(type) == float16_fields) return float16;
      if (log2 == 1 && half_fields_of(type) == bfloat16_fields) return bfloat16;
      break;
    case H5T_ENUM:
      if (is_bool_type(type)) return bool_;
      if (log2 >= 0) return Dtype{(H5Tget_sign(type) == H5T_SGN_NONE ? 5 : 1) + log2};
      break;
    case H5T_COMPOUND:
      if (H5Tget_nmembers(type) == 2 && H5Tget_member_class(type, 0) == H5T_FLOAT &&
          H5Tget_member_index(type, "r") == 0 && H5Tget_member_index(type, "i") == 1) {
        if (bytes == 8) return complex64;
        if (bytes == 16) return complex128;
      }
      break;
    case H5T_STRING: source.fail("holds texts in its dataset " + in_quotes(source.dataset), mend);
    default: break;
  }
  source.fail("holds elements of " + std::to_string(bytes) + " bytes in its dataset " +
                  in_quotes(source.dataset) + " that are no plain numbers",
              mend);
}

Shape shape_of_dataset(const Hdf5Source& source, hid_t dataset) {
  const Handle space(H5Dget_space(dataset), H5Sclose);
  if (H5Sget_simple_extent_type(space) == H5S_NULL)
    source.fail("has nothing in its dataset " + in_quotes(source.dataset), "write it with a shape");
  const int ndim = H5Sget_simple_extent_ndims(space);
  std::vector<hsize_t> extents(std::max(0, ndim));
  H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  for (const auto extent : extents)
    if (extent > static_cast<hsize_t>(INT64_MAX))
      source.fail("claims an extent beyond 2^63 in its dataset " + in_quotes(source.dataset),
                  "it is damaged: write it again");
  return Shape(std::vector<std::int64_t>(extents.begin(), extents.end()));
}

std::vector<std::string> names_of_datasets(hid_t file) {
#if H5_VERSION_GE(1, 12, 0)
  using ObjectInfo = H5O_info2_t;
  constexpr auto visit_objects = H5Ovisit3;
#else
  using ObjectInfo = H5O_info_t;
  constexpr auto visit_objects = H5Ovisit2;
#endif
  std::vector<std::string> names;
  visit_objects(
      file, H5_INDEX_NAME, H5_ITER_NATIVE,
      [](hid_t, const char* name, const ObjectInfo* info, void* out) {
        if (info->type == H5O_TYPE_DATASET)
          static_cast<std::vector<std::string>*>(out)->push_back(std::string("/") + name);
        return herr_t{0};
      },
      &names, H5O_INFO_BASIC);
  return names;
}

void check_filters(const Hdf5Source& source, hid_t dataset) {
  constexpr H5Z_filter_t lzf_filter = 32000;
  const Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  for (int n = 0; n < H5Pget_nfilters(creation); ++n) {
    char name[64] = "";
    unsigned flags = 0, config = 0;
    std::size_t values = 0;
    const H5Z_filter_t filter = H5Pget_filter2(creation, static_cast<unsigned>(n), &flags, &values, nullptr,
                                               sizeof name - 1, name, &config);
    if (filter < 0 || H5Zfilter_avail(filter) > 0) continue;
    const bool is_lzf = filter == lzf_filter;
    const std::string called = is_lzf ? "lzf" : name;
    source.fail("packs its dataset " + in_quotes(source.dataset) + " with the filter " +
                    std::to_string(filter) + (called.empty() ? "" : " (" + in_quotes(called) + ")") +
                    ", which this HDF5 library does not have",
                std::string("write it with gzip (") +
                    (is_lzf ? "by h5py, which alone has lzf: compression='gzip'" : "h5repack -f GZIP=4") +
                    "), or name the folder of a plugin that you trust in HDF5_PLUGIN_PATH: no code is loaded "
                    "otherwise");
  }
}

}  // namespace tessera::io
