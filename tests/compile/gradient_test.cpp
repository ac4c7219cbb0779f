// Compiled programs of gradients, on abstract meshes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tessera/grad.hpp>
#include <tessera/jit.hpp>

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::Not;

const Mesh line = abstract_mesh({4}, {"x"});

Array placed(Shape shape, P spec) { return device_put(zeros(std::move(shape)), line, std::move(spec)); }
template <class F, class... A> std::string text_of(F f, const A&... args) {
  return jit(std::move(f)).lower(args...).compile().as_text();
}

Array loss_of(const Array& first, const Array& second, const Array& x) {
  return sum(square(matmul(relu(matmul(x, first) + 1), second)));
}

std::string two_layers() {
  return text_of(value_and_grad<0, 1>(loss_of), placed({512, 400}, P()), placed({400, 300}, P()),
                 placed({64, 512}, P("x")));
}

TEST(Gradient, all_reduces_start_in_the_order_of_the_backward_pass) {
  const auto text = two_layers();
  const auto last_layer = text.find("f32[400,300] all-reduce"), first_layer = text.find("f32[512,400] dot");
  ASSERT_NE(last_layer, std::string::npos) << text;
  ASSERT_NE(first_layer, std::string::npos) << text;
  EXPECT_LT(last_layer, first_layer) << text;
}

TEST(Gradient, of_relu_keeps_its_result_only) {
  const auto text = two_layers();
  EXPECT_THAT(text, HasSubstr("dot+add+relu(")) << text;  // the operand is never stored
}

TEST(Gradient, masks_read_one_zero_instead_of_an_array_of_them) {
  const auto text = two_layers();
  EXPECT_THAT(text, HasSubstr("f32[] full()")) << text;
  EXPECT_THAT(text, Not(HasSubstr("f32[16,400] full()"))) << text;
}

TEST(Constants, that_are_read_whole_too) {
  const auto text = text_of(
      [](Array x) {
        const Array one = ones({8, 8});
        return std::pair(x + one, matmul(x, one));
      },
      placed({8, 8}, P("x", None)));
  EXPECT_THAT(text, testing::AllOf(HasSubstr("f32[] full()"), HasSubstr("f32[8,8] full()"))) << text;
}

}  // namespace
}  // namespace tessera
