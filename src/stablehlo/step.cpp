// Questions of rules about an operation.
#include <charconv>
#include <cstring>
#include <limits>

#include "base/text.hpp"
#include "stablehlo/evaluate.hpp"

namespace tessera::stablehlo {

const TensorType& OpCall::type(std::size_t result) const {
  if (result >= op.results.size()) refuse("a result is missing");
  return frame.function.values[static_cast<std::size_t>(op.results[result])];
}

void OpCall::want_operands(std::size_t count) const {
  if (x.size() != count)
    refuse("takes " + format_count(static_cast<std::int64_t>(count), "operand") + ", and has " +
           std::to_string(x.size()));
}

namespace {

std::int64_t number_of(const OpCall& step, const Attribute& attribute) {
  std::int64_t value = 0;
  const auto& text = attribute.text;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (attribute.kind != Attribute::Kind::number || read.ec != std::errc() ||
      read.ptr != text.data() + text.size())
    step.run.refuse(attribute.place, step.op.name + ": an integer is expected here");
  return value;
}

template <class T> void append(const HostArray& host, std::vector<std::int64_t>& into) {
  for (const T value : host.as<T>()) into.push_back(static_cast<std::int64_t>(value));
}

}  // namespace

std::vector<std::int64_t> integers_of(const OpCall& step, const Attribute& attribute) {
  std::vector<std::int64_t> values;
  if (attribute.kind == Attribute::Kind::list) {
    for (const auto& item : attribute.items) {
      if (item.kind == Attribute::Kind::list) {  // pairs
        const auto inner = integers_of(step, item);
        values.insert(values.end(), inner.begin(), inner.end());
      } else {
        values.push_back(number_of(step, item));
      }
    }
    return values;
  }
  if (attribute.kind == Attribute::Kind::number) return {number_of(step, attribute)};
  if (attribute.kind != Attribute::Kind::dense || !is_integer(attribute.dense->type.dtype) ||
      attribute.dense->type.shape.elements() > 1'000'000)
    step.run.refuse(attribute.place, step.op.name + ": a list of integers is expected here");
  const auto& dense = *attribute.dense;
  if (dense.type.dtype == int64)
    append<std::int64_t>(dense.values, values);
  else if (dense.type.dtype == int32)
    append<std::int32_t>(dense.values, values);
  else
    step.run.refuse(attribute.place, step.op.name + ": integers of 32 or 64 bits are expected here");
  if (dense.is_splat) values.assign(static_cast<std::size_t>(dense.type.shape.elements()), values.at(0));
  return values;
}

std::vector<std::int64_t> OpCall::integers(std::string_view name) const {
  const Attribute* attribute = find(name);
  return attribute == nullptr ? std::vector<std::int64_t>{} : integers_of(*this, *attribute);
}

std::vector<std::int64_t> OpCall::integers(std::string_view name, std::int64_t otherwise,
                                           std::size_t count) const {
  auto values = has(name) ? integers(name) : std::vector<std::int64_t>(count, otherwise);
  if (values.size() != count)
    refuse(std::string(name) + " has " + std::to_string(values.size()) + " numbers and not " +
           std::to_string(count));
  return values;
}

std::vector<int> OpCall::dims(std::string_view name, int ndim) const {
  std::vector<int> dims;
  std::vector<bool> seen(static_cast<std::size_t>(ndim));
  for (const auto d : integers(name)) {
    if (d < 0 || d >= ndim || seen[static_cast<std::size_t>(d)])
      refuse(std::string(name) + " names dim " + std::to_string(d) + " of " + std::to_string(ndim) +
             " dims, or names it twice");
    seen[static_cast<std::size_t>(d)] = true;
    dims.push_back(static_cast<int>(d));
  }
  return dims;
}

std::int64_t OpCall::integer(std::string_view name, std::int64_t otherwise) const {
  const Attribute* attribute = find(name);
  return attribute == nullptr ? otherwise : number_of(*this, *attribute);
}

int OpCall::dim(std::string_view name, int ndim) const {
  const auto d = integer(name, -1);
  if (d < 0 || d >= ndim)
    refuse(std::string(name) + " = " + std::to_string(d) + " of " + std::to_string(ndim) + " dims");
  return static_cast<int>(d);
}

std::string OpCall::word(std::string_view name) const {
  const Attribute* attribute = find(name);
  if (attribute == nullptr) return "";
  return attribute->kind == Attribute::Kind::unit ? "true" : attribute->text;
}

namespace {

template <class T> double first(const HostArray& host) { return static_cast<double>(host.as<T>()[0]); }

std::optional<double> number_of(const Constant& dense) {
  if (dense.values.size() != 1 || is_complex(dense.type.dtype)) return std::nullopt;
  const auto& host = dense.values;
  switch (dense.type.dtype.code) {
    case bool_.code: return static_cast<double>(host.bytes()[0] != std::byte{0});
    case int8.code: return first<std::int8_t>(host);
    case int16.code: return first<std::int16_t>(host);
    case int32.code: return first<std::int32_t>(host);
    case uint8.code: return first<std::uint8_t>(host);
    case uint16.code: return first<std::uint16_t>(host);
    case uint32.code: return first<std::uint32_t>(host);
    case float32.code: return first<float>(host);
    case float64.code: return first<double>(host);
    case int64.code: {
      const auto value = host.as<std::int64_t>()[0];  // beyond 2^53 a double is another number
      const bool is_exact = value == std::numeric_limits<std::int64_t>::min() ||
                            (value <= (std::int64_t{1} << 53) && value >= -(std::int64_t{1} << 53));
      return is_exact ? std::optional<double>(static_cast<double>(value)) : std::nullopt;
    }
    case uint64.code: {
      const auto value = host.as<std::uint64_t>()[0];
      return value <= (std::uint64_t{1} << 53) ? std::optional<double>(static_cast<double>(value))
                                               : std::nullopt;
    }
    case bfloat16.code: return static_cast<double>(static_cast<float>(host.as<bfloat16_t>()[0]));
    case float16.code: return static_cast<double>(static_cast<float>(host.as<float16_t>()[0]));
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<double> constant_of(const CallFrame& frame, int value, int most_steps) {
  const Operation* op = frame.makers[static_cast<std::size_t>(value)];
  if (op == nullptr || most_steps == 0) return std::nullopt;
  if (op->name == "stablehlo.constant") return number_of(*op->attributes.find("value")->dense);
  const bool keeps = op->name == "stablehlo.broadcast_in_dim" || op->name == "stablehlo.reshape";
  if (!keeps || op->operands.size() != 1) return std::nullopt;
  return constant_of(frame, op->operands[0], most_steps - 1);
}

}  // namespace tessera::stablehlo
