#include "graph/failed_value.hpp"

#include <tessera/error.hpp>

namespace tessera {

void raise(const FailedValue& failure) {
  switch (failure.kind) {
    case FailedValue::lin_alg: throw LinAlgError(failure.text);
    case FailedValue::nan: throw NanError(failure.text);
    case FailedValue::memory: throw MemoryError(failure.text);
    case FailedValue::other: break;
  }
  throw UserError(failure.text);
}

FailurePtr caught_failure() {
  const auto as = [](FailedValue::Kind kind, const std::exception& error) {
    return std::make_shared<const FailedValue>(FailedValue{kind, error.what()});
  };
  try {
    throw;
  } catch (const LinAlgError& error) {
    return as(FailedValue::lin_alg, error);
  } catch (const NanError& error) {
    return as(FailedValue::nan, error);
  } catch (const MemoryError& error) {
    return as(FailedValue::memory, error);
  } catch (const std::exception& error) {
    return as(FailedValue::other, error);
  }
}

}  // namespace tessera
