#include "ops/elementwise/trials.hpp"

namespace tessera {
namespace {

Trials one_call(Dtype dtype, double low, double high) {
  const Trial::Range range{low, high};
  return {.calls = {{dtype, {range, range, range}}}};
}

}  // namespace

Trials Trials::complexes(double low, double high) const {
  Trials more = *this;
  more.calls.push_back(one_call(complex128, low, high).calls[0]);
  return more;
}
Trials Trials::within(double ulp, long double (*exact)(long double), double precise_ulp) const {
  Trials more = *this;
  more.accuracy = {.ulp = ulp, .precise_ulp = precise_ulp == 0 ? ulp : precise_ulp, .of_one = exact};
  return more;
}
Trials Trials::within(double ulp, long double (*exact)(long double, long double), double precise_ulp) const {
  Trials more = *this;
  more.accuracy = {.ulp = ulp, .precise_ulp = precise_ulp == 0 ? ulp : precise_ulp, .of_two = exact};
  return more;
}
Trials Trials::differentiable_once() const {
  Trials more = *this;
  more.twice_differentiable = false;
  return more;
}

Trials reals(double low, double high) { return one_call(float64, low, high); }
Trials reals(Trial::Range a, Trial::Range b, Trial::Range c) { return {.calls = {{float64, {a, b, c}}}}; }
Trials integers(int low, int high) { return one_call(int32, low, high); }
Trials logarithms() { return {.calls = {{.dtype = float64, .of_logarithm = true}}}; }
Trials only_complexes(double low, double high) { return one_call(complex128, low, high); }

}  // namespace tessera
