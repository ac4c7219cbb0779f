// Texts that are broken or have no counterpart are refused with line and column, alike on every rank.
#include <gmock/gmock.h>

#include <tessera/grad.hpp>
#include <tessera/jit.hpp>

#include "golden.hpp"

namespace tessera::test {
namespace {

// The error of a main function of two float32[2, 3] arguments with these lines, run on ones.
std::string error_of(const std::string& lines, const std::string& result = "tensor<2x3xf32>") {
  const std::string text =
      "module @m {\n  func.func public @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> " + result +
      " {\n" + lines + "  }\n}\n";
  try {
    const auto program = stablehlo::parse(text, "bad.stablehlo");
    eval(program({ones({2, 3}), ones({2, 3})}));
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "no error";
}

template <class E, class F> std::string text_of_error(F call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

std::string error_of_text(const std::string& text) {
  try {
    stablehlo::parse(text, "bad.stablehlo");
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "no error";
}

TEST(StablehloText, an_operation_without_counterpart_is_named_with_line_and_column) {
  EXPECT_EQ(error_of("    %0 = stablehlo.frobnicate %a : tensor<2x3xf32>\n    return %0 : tensor<2x3xf32>\n"),
            "bad.stablehlo:3:10: stablehlo.frobnicate has no counterpart");
  EXPECT_EQ(error_of("    %0 = stablehlo.dynamic_reshape %a, %b : (tensor<2x3xf32>, tensor<2x3xf32>) -> "
                     "tensor<2x3xf32>\n    return %0 : "
                     "tensor<2x3xf32>\n"),
            "bad.stablehlo:3:10: stablehlo.dynamic_reshape has no counterpart: shapes that are values: "
            "export the program for shapes in numbers");
}

TEST(StablehloText, a_custom_call_without_counterpart_is_named_with_its_reason) {
  EXPECT_EQ(error_of("    %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%a) {api_version = 4 : "
                     "i32} : (tensor<2x3xf32>) -> "
                     "tensor<2x3xf32>\n    return %0 : tensor<2x3xf32>\n"),
            "bad.stablehlo:3:10: stablehlo.custom_call: the function 'xla_ffi_python_cpu_callback' has no "
            "counterpart: it calls back into the "
            "Python program that wrote the text");
}

TEST(StablehloText, a_value_that_is_not_defined_is_named) {
  EXPECT_EQ(error_of("    return %c : tensor<2x3xf32>\n"), "bad.stablehlo:3:12: %c is not known here");
  EXPECT_EQ(error_of("    return %a#1 : tensor<2x3xf32>\n"),
            "bad.stablehlo:3:12: %a#1: the name stands for 1 values");
}

TEST(StablehloText, a_type_that_is_not_the_operands_is_an_error) {
  EXPECT_EQ(error_of("    %0 = stablehlo.add %a, %b : (tensor<2x3xf32>, tensor<3x2xf32>) -> "
                     "tensor<2x3xf32>\n    return %0 : tensor<2x3xf32>\n"),
            "bad.stablehlo:3:33: stablehlo.add: operand 1 is float32(2, 3) and not float32(3, 2)");
  EXPECT_EQ(error_of("    %0 = stablehlo.add %a, %b : tensor<2x3xi32>\n    return %0 : tensor<2x3xi32>\n",
                     "tensor<2x3xi32>"),
            "bad.stablehlo:3:10: stablehlo.add gives float32(2, 3), and the text says int32(2, 3)");
  EXPECT_EQ(error_of("    return %a : tensor<2x3xf32>\n", "tensor<3x2xf32>"),
            "bad.stablehlo:2:20: result 0 of the main function is another type than it promises");
}

TEST(StablehloText, element_types_of_accelerators_are_refused_by_name) {
  EXPECT_EQ(error_of_text("func.func @main(%a: tensor<4xf8E4M3FN>) -> tensor<4xf8E4M3FN> {\n  return %a : "
                          "tensor<4xf8E4M3FN>\n}\n"),
            "bad.stablehlo:1:21: the element type 'f8E4M3FN' has no counterpart; there are i1, i8 to i64, "
            "ui8 to ui64, bf16, f16, f32, f64, and "
            "complex ones of the last two");
  EXPECT_EQ(
      error_of_text(
          "func.func @main(%a: tensor<?x3xf32>) -> tensor<?x3xf32> {\n  return %a : tensor<?x3xf32>\n}\n"),
      "bad.stablehlo:1:28: the extent is not known: export the program for shapes in numbers");
}

TEST(StablehloText, what_ends_too_early_is_told) {
  EXPECT_EQ(error_of_text(""),
            "bad.stablehlo:1:1: the file is empty; a program in StableHLO text is expected: "
            "jax.jit(f).lower(...).as_text()");
  EXPECT_EQ(error_of_text("module {\n  func.func @main() {\n"),
            "bad.stablehlo:3:1: '}' is expected before the end of the file");
  EXPECT_EQ(error_of_text("hello"),
            "bad.stablehlo:1:1: a function is expected here (func.func), and not 'hello'");
}

TEST(StablehloText, constants_say_what_is_wrong_with_them) {
  const auto constant = [](const std::string& value) {
    return error_of_text("func.func @main() -> tensor<2xf32> {\n  %0 = stablehlo.constant dense<" + value +
                         "> : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n");
  };
  EXPECT_EQ(constant("[1.0, 2.0, 3.0]"), "bad.stablehlo:2:32: lists of extents (3,) for float32(2,)");
  EXPECT_EQ(constant("[1.0, two]"), "bad.stablehlo:2:39: 'two' is no float32");
  EXPECT_EQ(constant("\"0x0000803F00\""),
            "bad.stablehlo:2:33: these are not the bytes of float32(2,) in hexadecimal digits");
  EXPECT_EQ(constant("\"0x0000803F00000040\""), "no error");
}

TEST(StablehloText, a_function_that_calls_itself_is_an_error) {
  const auto text =
      "func.func @main(%a: tensor<f32>) -> tensor<f32> {\n  %0 = call @f(%a) : (tensor<f32>) -> "
      "tensor<f32>\n  return %0 : tensor<f32>\n}\n"
      "func.func private @f(%a: tensor<f32>) -> tensor<f32> {\n  %0 = call @f(%a) : (tensor<f32>) -> "
      "tensor<f32>\n  return %0 : tensor<f32>\n}\n";
  const auto program = stablehlo::parse(text, "bad.stablehlo");
  EXPECT_EQ(text_of_error<ArgumentError>([&] { eval(program({ones({})})); }),
            "bad.stablehlo:6:8: calls are nested more than 200 deep: a function that calls itself?");
}

TEST(StablehloText, deep_nesting_is_an_error_and_not_the_end_of_the_stack) {
  EXPECT_THAT(error_of_text("module attributes {a = " + std::string(100'000, '[')),
              testing::HasSubstr("nested more than 100 deep"));
}

TEST(StablehloProgram, arguments_of_other_types_are_refused_with_the_wanted_ones) {
  const auto program = stablehlo::parse(golden_program("mlp_step").text, "mlp_step.stablehlo");
  EXPECT_EQ(text_of_error<ArgumentError>([&] {
              (void)(program({ones({5, 7})}));
            }),
            "mlp_step.stablehlo: the program takes 4 arguments, and is given 1");
  EXPECT_EQ(text_of_error<ShapeError>([&] {
              (void)(program({ones({5, 7}), ones({7, 3}), ones({4}), ones({5, 3})}));
            }),
            "mlp_step.stablehlo: argument 2 is (4,), and the program wants (3,)");
  EXPECT_EQ(text_of_error<DtypeError>([&] {
              (void)(program({ones({5, 7}), ones({7, 3}), ones({3}, int32), ones({5, 3})}));
            }),
            "mlp_step.stablehlo: argument 2 is int32, and the program wants float32; convert it with astype");
}

TEST(StablehloProgram, says_its_arguments_and_results) {
  const auto program = stablehlo::parse(golden_program("mlp_step").text);
  ASSERT_EQ(program.arguments().size(), 4u);
  EXPECT_EQ(program.arguments()[1].shape, Shape({7, 3}));
  ASSERT_EQ(program.results().size(), 3u);
  EXPECT_EQ(program.results()[2].name, "result[2]");
  EXPECT_EQ(program.results()[2].dtype, float32);
}

TEST(StablehloProgram, is_planned_with_its_own_lines) {
  const auto program = stablehlo::parse(golden_program("mlp_step").text, "mlp_step.stablehlo");
  const Mesh mesh = make_mesh({device_count()}, {"x"}, devices());
  const std::vector<Array> arguments{device_put(ones({5, 7}), mesh, P("x")), ones({7, 3}), ones({3}),
                                     ones({5, 3})};
  const auto text = to_string(explain(program, arguments));
  if (device_count() == 1) return;
  EXPECT_THAT(text, testing::ContainsRegex("stablehlo.[a-z_]+ at mlp_step.stablehlo:[0-9]+"));
}

TEST(StablehloProgram, has_gradients_as_any_function) {
  const auto program = stablehlo::parse(
      "func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {\n  %0 = stablehlo.multiply %a, %a : "
      "tensor<3xf32>\n  return %0 : tensor<3xf32>\n}\n");
  const auto gradient = grad([&](const Array& x) { return sum(program({x}).at(0)); })(array({1.f, 2.f, 3.f}));
  EXPECT_EQ(to_vector<float>(gradient), (std::vector<float>{2, 4, 6}));
}

TEST(StablehloProgram, puts_arguments_and_results_where_the_text_says) {
  if (device_count() < 8) return;
  const auto golden = golden_program("argument_layouts");
  const auto program = stablehlo::parse(golden.text);
  ASSERT_TRUE(program.arguments()[0].sharding.has_value());
  EXPECT_EQ(program.arguments()[0].sharding->spec(), P("x", "y"));
  EXPECT_EQ(program.arguments()[0].sharding->mesh().axis_sizes(), (std::vector<int>{4, 2}));
  const auto results = program(arguments_of(golden));
  EXPECT_EQ(results[0].sharding(), NamedSharding(program.arguments()[0].sharding->mesh(), P("x")));
  EXPECT_TRUE(results[1].is_fully_replicated());
}

TEST(StablehloProgram, a_mesh_of_more_devices_names_both_numbers_and_the_way_out) {
  const auto text =
      "sdy.mesh @mesh = <[\"x\"=64]>\nfunc.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n  return %a : "
      "tensor<4xf32>\n}\n";
  const auto ranks = device_count() == 1 ? "1 rank" : std::to_string(device_count()) + " ranks";
  EXPECT_EQ(text_of_error<ShardingError>([&] { (void)(stablehlo::parse(text, "p.stablehlo")); }),
            "p.stablehlo:1:1: the mesh @mesh has more devices, and the job has " + ranks +
                "; start it with more (tessera run -n), or leave the layouts out (--ignore-shardings, "
                "LoadOptions::ignore_shardings)");
  EXPECT_EQ(stablehlo::parse(text, "p.stablehlo", {.ignore_shardings = true}).arguments().size(), 1u);
}

TEST(StablehloProgram, layouts_in_the_form_of_gspmd_are_read) {
  if (device_count() < 8) return;
  const auto layout = [](const std::string& words, const std::string& type) {
    const auto program = stablehlo::parse(
        "module attributes {mhlo.num_partitions = 8 : i32} {\nfunc.func @main(%a: " + type +
        " {mhlo.sharding = \"" + words + "\"}) -> " + type + " {\n  return %a : " + type + "\n}\n}\n");
    return *program.arguments()[0].sharding;
  };
  const Mesh mesh = make_mesh({4, 2}, {"x", "y"}, devices()), first = make_mesh({8}, {"x"}, devices());
  EXPECT_EQ(layout("{devices=[4,2]<=[8]}", "tensor<8x8xf32>"), NamedSharding(mesh, P("x", "y")));
  EXPECT_EQ(layout("{devices=[4,1,2]<=[8] last_tile_dim_replicate}", "tensor<8x8xf32>"),
            NamedSharding(mesh, P("x")));
  EXPECT_EQ(layout("{devices=[2,4]<=[4,2]T(1,0)}", "tensor<8x8xf32>"), NamedSharding(mesh, P("y", "x")));
  EXPECT_EQ(layout("{devices=[8]0,1,2,3,4,5,6,7}", "tensor<9xf32>"), NamedSharding(first, P("x")));
  EXPECT_TRUE(layout("{replicated}", "tensor<9xf32>").is_fully_replicated());
}

TEST(StablehloProgram, a_qr_of_a_split_matrix_is_one_qr_and_gathers_nothing) {
  const auto golden = golden_program("qr");
  const auto program = stablehlo::parse(golden.text);
  const auto text = jit(program).lower(arguments_of(golden)).as_text();
  EXPECT_THAT(text, testing::HasSubstr("qr"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("loop")));
}

TEST(StablehloProgram, draws_and_pivots_of_jax_are_ops) {
  const auto recorded = [](const char* name) {
    const auto golden = golden_program(name);
    return jit(stablehlo::parse(golden.text)).lower(arguments_of(golden)).as_text();
  };
  EXPECT_THAT(recorded("random_numbers"), testing::HasSubstr("random_bits"));
  EXPECT_THAT(recorded("lu_solve"), testing::HasSubstr("pivots_to_permutation"));
  EXPECT_THAT(recorded("batched_solves"), testing::HasSubstr("pivots_to_permutation"));
}

TEST(StablehloProgram, is_read_from_a_file_by_all_ranks) {
  const auto path = (golden_programs() / "poisson.stablehlo").string();
  const auto golden = golden_program("poisson");
  expect_results(golden, stablehlo::load(path)(arguments_of(golden)));
  EXPECT_THROW((void)stablehlo::load("no_such_file.stablehlo"), IoError);
}

}  // namespace
}  // namespace tessera::test
