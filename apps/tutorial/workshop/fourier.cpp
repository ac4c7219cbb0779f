// Exercise 4, first half: the FFT of a volume that is split over the devices.
#include "steps.hpp"

namespace workshop {

namespace {

Array transform(const Array& x) { return fft::fftn(x); }
Array transform_transposed(const Array& x) { return fft::fftn(x, {.out_sharding = fft::transposed}); }

template <class F> std::string compiled_text(F f, const Array& x) {
  return jit(f).lower(x).compile().as_text();
}

void keeps_its_layout(const Array& local, const Array& split) {
  step("20", "exercise 4: fftn of a volume over 4 x 2 devices");
  const Array global = fft::fftn(split);
  check(close_complex(array(multihost::process_allgather(global, true)), fft::fftn(local), 1e-5),
        "gathered, it is the fftn of one process");

  step("21", "planes of operand and result");
  picture("A(..., 0)", split(ellipsis, 0));
  picture("fftn(A)(..., 0)", global(ellipsis, 0));
  check(global.sharding() == split.sharding(), "the result lies as the operand");

  step("22", "no rank gathers");
  say_gathers("fftn of an array that nobody placed", compiled_text(transform, local));
  const std::string text = compiled_text(transform, split);
  say_gathers("fftn of the array over 4 x 2 devices", text);
  check(!names(text, "all-gather"), "\"all-gather\" is absent from the compiled text");
  check(names(text, "all-to-all"), "blocks trade places by all-to-all");
}

void transposed(const std::string& number, const Array& local, const Array& split) {
  step(number, "the result as the last stage leaves it: " + text_of(split.sharding().mesh()));
  const Array turned = transform_transposed(split);
  check(close_complex(array(multihost::process_allgather(turned, true)), fft::fftn(local), 1e-5),
        "gathered, the values are the same: only the layout is another");
  say("A lies as " + text_of(split.sharding().spec()) + ", the result as " +
      text_of(turned.sharding().spec()));
  check(!(turned.sharding() == split.sharding()), "the layout is transposed");

  step(number + "a", "its planes");
  picture("fftn(A)(..., 0)", turned(ellipsis, 0));
  picture("fftn(A)(0)", turned(0));
  step(number + "b", "what that saves");
  const auto keep = explain(transform, split), turn = explain(transform_transposed, split);
  say("bytes that arrive at a rank: " + std::to_string(keep.bytes()) + " to keep the layout, " +
      std::to_string(turn.bytes()) + " transposed");
  const std::string text = compiled_text(transform_transposed, split);
  say_gathers("the transposed fftn", text);
  check(!names(text, "all-gather"), "\"all-gather\" is absent from the compiled text");
  check(turn.bytes() < keep.bytes(), "the way back is saved");
}

}  // namespace

void fourier() {
  const Array local = random::normal(random::key(0), {16, 16, 16});
  const Array pencils = device_put(local, make_mesh({4, 2}, {"x", "y"}), P("x", "y"));
  keeps_its_layout(local, pencils);
  transposed("23", local, pencils);
  const Array slabs = device_put(local, make_mesh({1, 8}, {"x", "y"}), P(None, "y"));
  transposed("24", local, slabs);
}

}  // namespace workshop
