// The parts of an index expression as written: x(0, slice(), newaxis).
#include <tessera/array.hpp>

namespace tessera {
namespace {

// The parts that were given: those before the first omitted one.
template <class... Part> std::vector<IndexPart> given_parts(const Part&... parts) {
  std::vector<IndexPart> given;
  const IndexPart* const all[] = {&parts...};
  for (const IndexPart* part : all) {
    if (part == &detail::no_part()) break;
    given.push_back(*part);
  }
  return given;
}

}  // namespace

const IndexPart& detail::no_part() {
  static const IndexPart part(None);
  return part;
}

Array Array::operator()(const IndexPart& a, const IndexPart& b, const IndexPart& c, const IndexPart& d,
                        const IndexPart& e, const IndexPart& f, std::source_location where) const {
  return index(*this, given_parts(a, b, c, d, e, f), where);
}

At Array::at(const IndexPart& a, const IndexPart& b, const IndexPart& c, const IndexPart& d,
             const IndexPart& e, const IndexPart& f, std::source_location where) const {
  return At(*this, given_parts(a, b, c, d, e, f), where);
}

}  // namespace tessera
