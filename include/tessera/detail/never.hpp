// A value for static_assert in templates that must not be used.
#pragma once

namespace tessera::detail {

// False, but dependent on the template's arguments, so that the assertion fails only on use.
template <class... T> inline constexpr bool never = false;

}  // namespace tessera::detail
