#include "io/hdf5/attributes.hpp"

#include <tessera/error.hpp>

#include <optional>

#include "base/text.hpp"
#include "io/hdf5/places.hpp"

namespace tessera::io {
namespace {

void check(const Hdf5Source& source, bool ok, const std::string& name, const char* what) {
  if (!ok)
    source.fail(std::string(what) + " of the attribute " + in_quotes(name) + " of " +
                    in_quotes(source.dataset) + " failed: " + hdf5_reason(),
                "attributes are for small things (64 KiB); larger ones are datasets");
}

Handle object_of(const Hdf5Source& source, hid_t file) {
  if (!hdf5_exists(file, source.dataset))
    source.fail("has no " + in_quotes(source.dataset), "make the dataset or group first");
  return {H5Oopen(file, source.dataset.c_str(), H5P_DEFAULT), H5Oclose};
}

// The type of texts, as h5py writes them.
Handle text_type() {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type, H5T_VARIABLE);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

// An attribute to be written: type, extents, and the memory that the library reads from.
struct Stored {
  Handle type, space;
  const void* data = nullptr;
};
Handle list_space(std::size_t n) {
  const hsize_t extent = n;
  return {H5Screate_simple(1, &extent, nullptr), H5Sclose};
}
struct Form {
  std::vector<const char*>& texts;
  Stored operator()(const std::int64_t& n) const { return {plain(H5T_NATIVE_INT64), scalar(), &n}; }
  Stored operator()(const double& n) const { return {plain(H5T_NATIVE_DOUBLE), scalar(), &n}; }
  Stored operator()(const std::string& text) const {
    texts.push_back(text.c_str());
    return {text_type(), scalar(), texts.data()};
  }
  Stored operator()(const std::vector<std::int64_t>& list) const {
    return {plain(H5T_NATIVE_INT64), list_space(list.size()), list.data()};
  }
  Stored operator()(const std::vector<double>& list) const {
    return {plain(H5T_NATIVE_DOUBLE), list_space(list.size()), list.data()};
  }
  Stored operator()(const std::vector<std::string>& list) const {
    for (const auto& text : list) texts.push_back(text.c_str());
    return {text_type(), list_space(list.size()), texts.data()};
  }
  static Handle plain(hid_t type) { return {H5Tcopy(type), H5Tclose}; }
  static Handle scalar() { return {H5Screate(H5S_SCALAR), H5Sclose}; }
};

// An attribute to be read. A failed read is an error, since the buffer would hold zeros.
struct Attribute {
  const Hdf5Source& source;
  const std::string& name;
  hid_t id;
  void read(hid_t type, void* out) const {
    if (H5Aread(id, type, out) < 0)
      source.fail("has an attribute " + in_quotes(name) + " of " + in_quotes(source.dataset) +
                      " that cannot be read: " + hdf5_reason(),
                  "it is damaged: write it again");
  }
  Handle space() const { return {H5Aget_space(id), H5Sclose}; }
  std::int64_t elements() const {
    const Handle extents = space();
    return H5Sget_simple_extent_type(extents) == H5S_NULL ? 0 : H5Sget_simple_extent_npoints(extents);
  }
  bool is_scalar() const { return H5Sget_simple_extent_type(space()) == H5S_SCALAR; }
};

template <class T> Hdf5Attribute as_attribute(const Attribute& attribute, std::vector<T> list) {
  if (attribute.is_scalar() && list.size() == 1) return list[0];
  return list;
}
template <class T> std::vector<T> read_numbers(const Attribute& attribute, hid_t type) {
  std::vector<T> list(static_cast<std::size_t>(attribute.elements()));
  if (!list.empty()) attribute.read(type, list.data());
  return list;
}

std::vector<std::string> read_varying_texts(const Attribute& attribute, hid_t stored) {
  const auto n = static_cast<std::size_t>(attribute.elements());
  std::vector<char*> pointers(n, nullptr);
  std::vector<std::string> texts(n);
  const Handle type = text_type(), space = attribute.space();
  H5Tset_cset(type, H5Tget_cset(stored));
  if (n == 0) return texts;
  attribute.read(type, pointers.data());
  for (std::size_t i = 0; i < n; ++i)
    if (pointers[i] != nullptr) texts[i] = pointers[i];
  H5Dvlen_reclaim(type, space, H5P_DEFAULT, pointers.data());
  return texts;
}
std::vector<std::string> read_texts(const Attribute& attribute, hid_t stored) {
  if (H5Tis_variable_str(stored) > 0) return read_varying_texts(attribute, stored);
  const std::size_t width = H5Tget_size(stored), n = static_cast<std::size_t>(attribute.elements());
  std::string all(width * n, '\0');
  if (n > 0) attribute.read(stored, all.data());
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < n; ++i) {
    const std::string padded = all.substr(i * width, width);
    texts.push_back(padded.substr(0, padded.find('\0')));
  }
  return texts;
}

// nullopt if the attribute is neither number nor text.
std::optional<Hdf5Attribute> read_attribute(const Attribute& attribute) {
  const Handle type(H5Aget_type(attribute.id), H5Tclose);
  constexpr std::int64_t most = 1 << 26;
  const std::int64_t elements = attribute.elements(), width = static_cast<std::int64_t>(H5Tget_size(type));
  if (elements < 0 || width <= 0 || elements > most / width)
    attribute.source.fail("claims more than 64 MiB in the attribute " + in_quotes(attribute.name) + " of " +
                              in_quotes(attribute.source.dataset),
                          "it is damaged: write it again");
  switch (H5Tget_class(type)) {
    case H5T_INTEGER: return as_attribute(attribute, read_numbers<std::int64_t>(attribute, H5T_NATIVE_INT64));
    case H5T_FLOAT: return as_attribute(attribute, read_numbers<double>(attribute, H5T_NATIVE_DOUBLE));
    case H5T_STRING: return as_attribute(attribute, read_texts(attribute, type));
    case H5T_ENUM: {  // h5py's bool
      if (H5Tget_size(type) != 1) return std::nullopt;
      const auto flags = read_numbers<std::int8_t>(attribute, type);
      return as_attribute(attribute, std::vector<std::int64_t>(flags.begin(), flags.end()));
    }
    default: return std::nullopt;
  }
}

std::vector<std::string> names_of(hid_t object) {
  std::vector<std::string> names;
  H5Aiterate2(
      object, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr,
      [](hid_t, const char* name, const H5A_info_t*, void* out) {
        static_cast<std::vector<std::string>*>(out)->push_back(name);
        return herr_t{0};
      },
      &names);
  return names;
}

}  // namespace

void write_attribute(const Hdf5Source& source, hid_t file, const std::string& name,
                     const Hdf5Attribute& value) {
  std::vector<const char*> texts;
  const Handle object = object_of(source, file);
  check(source, object.ok(), name, "opening");
  const Stored stored = std::visit(Form{texts}, value);
  // Writes under another name first, so that the old attribute stays if the new one is refused.
  const bool exists = H5Aexists(object, name.c_str()) > 0;
  const std::string made = exists ? name + "\x01new" : name;
  const Handle attribute(
      H5Acreate2(object, made.c_str(), stored.type, stored.space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  check(source, attribute.ok(), name, "creation");
  const bool is_empty = H5Sget_simple_extent_npoints(stored.space) == 0;
  check(source, is_empty || H5Awrite(attribute, stored.type, stored.data) >= 0, name, "writing");
  if (exists)
    check(source, H5Adelete(object, name.c_str()) >= 0 && H5Arename(object, made.c_str(), name.c_str()) >= 0,
          name, "replacement");
}

std::map<std::string, Hdf5Attribute> read_attributes(const Hdf5Source& source, hid_t file) {
  const Handle object = object_of(source, file);
  check(source, object.ok(), "", "opening");
  std::map<std::string, Hdf5Attribute> found;
  for (const auto& name : names_of(object)) {
    const Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose);
    check(source, attribute.ok(), name, "opening");
    if (auto value = read_attribute({source, name, attribute})) found.emplace(name, std::move(*value));
  }
  return found;
}

}  // namespace tessera::io
