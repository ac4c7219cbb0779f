// For static_assert in templates that must not be used.
#pragma once

namespace tessera::detail {

// False, so that an assertion waits for its template's use.
template <class... T> inline constexpr bool never = false;

}  // namespace tessera::detail
