// Formulas of distributions, written as formulas.
#pragma once
#include "ops/functions.hpp"

namespace tessera::random {

// Arithmetic whose ops all cite the user's call.
struct Traced {
  Array x;
  Where at;
  Operand operand() const { return Operand(x, at); }
};
inline Traced operator+(const Traced& a, const Traced& b) { return {add(a.operand(), b.operand()), a.at}; }
inline Traced operator-(const Traced& a, const Traced& b) {
  return {subtract(a.operand(), b.operand()), a.at};
}
inline Traced operator*(const Traced& a, const Traced& b) {
  return {multiply(a.operand(), b.operand()), a.at};
}
inline Traced operator/(const Traced& a, const Traced& b) { return {divide(a.operand(), b.operand()), a.at}; }
inline Traced operator-(const Traced& a) { return {negative(a.operand()), a.at}; }
inline Traced operator*(double a, const Traced& b) { return Traced{Array(a), b.at} * b; }
inline Traced operator-(const Traced& a, double b) { return a - Traced{Array(b), a.at}; }
inline Traced operator/(const Traced& a, double b) { return a / Traced{Array(b), a.at}; }
inline Traced apply(Array (*f)(const Operand&), const Traced& a) { return {f(a.operand()), a.at}; }

}  // namespace tessera::random
