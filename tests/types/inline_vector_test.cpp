// The vector behind shapes, operands and results: elements in the object, or in memory of their own.
#include <tessera/detail/inline_vector.hpp>
#include <tessera/shape.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace tessera {
namespace {

using testing::ElementsAre;
using Texts = detail::InlineVector<std::string, 2>;  // strings: a lost or doubled destructor shows
const std::string a = "a long text that takes memory", b = "another long text with memory", c = "c";

bool is_inside(const Texts& texts) {
  const auto* const object = reinterpret_cast<const char*>(&texts);
  const auto* const data = reinterpret_cast<const char*>(texts.data());
  return data >= object && data < object + sizeof texts;
}

TEST(inline_vector, elements_leave_the_object_when_there_is_no_room) {
  Texts texts{a, b};
  EXPECT_TRUE(is_inside(texts));
  texts.push_back(c);
  EXPECT_FALSE(is_inside(texts));
  EXPECT_THAT(texts, ElementsAre(a, b, c));
  texts.resize(1);
  EXPECT_THAT(texts, ElementsAre(a));
}

TEST(inline_vector, an_element_of_its_own_may_be_appended) {
  Texts texts{a, b};
  texts.emplace_back(texts[0]);
  EXPECT_THAT(texts, ElementsAre(a, b, a));
}

TEST(inline_vector, copies_and_moves_of_few_and_many_elements) {
  for (const auto& original : {Texts{}, Texts{a}, Texts{a, b}, Texts{a, b, c}}) {
    Texts copy(original), target{c, c, c}, moved;
    target = copy;
    EXPECT_EQ(target, original);
    moved = std::move(copy);
    EXPECT_EQ(moved, original);
    EXPECT_TRUE(copy.empty());
    copy.push_back(b);  // may be used again
    EXPECT_THAT(copy, ElementsAre(b));
    const Texts constructed(std::move(moved));
    EXPECT_EQ(constructed, original);
    EXPECT_TRUE(moved.empty() && is_inside(moved));
    target = *&target;
    EXPECT_EQ(target, original);
  }
}

TEST(inline_vector, comparison_is_by_elements) {
  EXPECT_NE((Texts{a, b}), (Texts{a}));
  EXPECT_NE((Texts{a, b}), (Texts{a, c}));
  EXPECT_EQ((Texts{a, b}), (Texts{a, b}));
}

TEST(inline_vector, elements_that_only_move) {
  detail::InlineVector<std::unique_ptr<int>, 1> owners;
  for (int i = 0; i < 9; ++i) owners.push_back(std::make_unique<int>(i));
  auto others = std::move(owners);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(*others[i], i);
  others.pop_back();
  others.clear();
  EXPECT_TRUE(others.empty());
}

TEST(shape, of_more_dims_than_it_has_room_for) {
  const std::vector<std::int64_t> extents = {2, 3, 4, 5, 6, 7};
  const Shape shape(extents), copy = shape;
  EXPECT_EQ(shape.vector(), extents);
  EXPECT_EQ(copy, (Shape{2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(copy.elements(), 5040);
  EXPECT_EQ(copy.back(), 7);
  EXPECT_EQ(to_string(copy), "(2, 3, 4, 5, 6, 7)");
  EXPECT_EQ(Shape(std::vector<int>{3, 4}), (Shape{3, 4}));
}

}  // namespace
}  // namespace tessera
