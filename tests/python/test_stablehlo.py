"""Programs in StableHLO text through Python."""
import json
import pathlib
import unittest

import numpy as np
import tessera as ts

folder = pathlib.Path(__file__).resolve().parents[1] / "stablehlo" / "golden"


def golden(name):
    values = json.loads((folder / f"{name}.json").read_text())
    host = lambda x: np.array([float(v) for v in x["values"]], x["dtype"]).reshape(x["shape"])  # noqa: E731
    return [host(x) for x in values["arguments"]], [host(x) for x in values["results"]]


class Programs(unittest.TestCase):
    def test_a_file_is_a_function_of_arrays(self):
        arguments, wanted = golden("mlp_step")
        step = ts.stablehlo.load(str(folder / "mlp_step.stablehlo"))
        self.assertEqual([a.shape for a in step.arguments], [(5, 7), (7, 3), (3,), (5, 3)])
        self.assertEqual(step.results[0].name, "result[0]")
        for got, right in zip(step(*arguments), wanted):
            np.testing.assert_allclose(np.asarray(ts.device_get(got)), right, rtol=1e-5, atol=1e-6)

    def test_gradients_and_plans_are_those_of_any_function(self):
        square = ts.stablehlo.parse("func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {\n  %0 = stablehlo.multiply %a, %a : tensor<3xf32>\n  return %0 : tensor<3xf32>\n}\n")
        gradient = ts.grad(lambda x: ts.sum(square(x)[0]))(ts.asarray([1., 2., 3.], dtype="float32"))
        self.assertEqual(gradient.tolist(), [2, 4, 6])

    def test_errors_name_the_line_of_the_text(self):
        with self.assertRaisesRegex(ValueError, r"^p.stablehlo:2:10: %a is not known here"):
            ts.stablehlo.parse("func.func @main() -> tensor<f32> {\n  return %a : tensor<f32>\n}\n", "p.stablehlo")
        with self.assertRaisesRegex(ValueError, "takes 4 arguments, and is given 0"):
            ts.stablehlo.load(str(folder / "mlp_step.stablehlo"))()


if __name__ == "__main__":
    unittest.main()
