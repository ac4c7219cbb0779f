// One function out of several lambdas, for std::visit:
//
//   std::visit(overloaded{[](const Move& m) { ... }, [](const Alias&) { ... }}, instruction.what)
#pragma once

namespace tessera {

template <class... Cases> struct overloaded : Cases... { using Cases::operator()...; };
template <class... Cases> overloaded(Cases...) -> overloaded<Cases...>;  // clang 16 needs this guide

}  // namespace tessera
