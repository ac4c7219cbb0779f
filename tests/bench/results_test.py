"""What scripts/bench makes of results and of other libraries' programs, with planted files and programs: nothing is measured."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

root = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / "scripts/benchmark"))
sys.dont_write_bytecode = True
import order  # noqa: E402
import peers  # noqa: E402
import results  # noqa: E402


def row(name, ours, peer_samples=(2.0, 2.0, 2.0), ranks=2, **more):
    peer_s = sorted(peer_samples)[len(peer_samples) // 2]
    ours_s = sorted(ours)[len(ours) // 2]
    return {"name": name, "ranks": ranks, "ours_s": ours_s, "ours": list(ours), "peer": "a peer", "peer_s": peer_s, "peer_samples": list(peer_samples), "ratio": peer_s / ours_s, "goal": 1.5} | more


class Against(unittest.TestCase):
    def run_bench(self, before, after):
        with tempfile.TemporaryDirectory() as folder:
            files = [pathlib.Path(folder, name) for name in ("before.json", "after.json")]
            for file, content in zip(files, (before, after)):
                file.write_text(content if isinstance(content, str) else json.dumps(content))
            words = [root / "scripts/bench", "--against", files[0], "--results", files[1]]
            return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_names_what_got_slower_and_says_so_by_its_status(self):
        before = {"machine": {}, "rows": [row("steady", [1, 1.01, 0.99]), row("slowed", [1, 1.01, 0.99]), row("sped", [1, 1.01, 0.99])]}
        after = {"machine": {}, "rows": [row("steady", [1.02, 1.0, 1.01]), row("slowed", [1.3, 1.31, 1.29]), row("sped", [0.5, 0.51, 0.49])]}
        done = self.run_bench(before, after)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"SLOWER  slowed +2 ranks  1 s -> 1.3 s +1.30 x")
        self.assertRegex(done.stdout, r"faster  sped")
        self.assertNotIn("steady", done.stdout)
        self.assertIn("3 rows compared, 1 slower beyond noise", done.stdout)

    def test_a_difference_inside_the_noise_is_none(self):
        noisy = {"rows": [row("noisy", [1.0, 1.4, 0.7, 1.2, 0.8])]}
        self.assertEqual(self.run_bench(noisy, {"rows": [row("noisy", [1.2, 1.6, 0.9, 1.4, 1.0])]}).returncode, 0)

    def test_a_machine_that_is_slower_for_the_peers_too_is_no_regression(self):
        before = {"rows": [row(f"row{i}", [1, 1.01, 0.99]) for i in range(5)]}
        after = {"rows": [row(f"row{i}", [1.5, 1.51, 1.49], peer_samples=(3.0, 3.0, 3.0)) for i in range(5)]}
        done = self.run_bench(before, after)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("the peers took 1.50 x", done.stdout)

    def test_rows_that_are_gone_are_named_and_ranks_tell_rows_apart(self):
        before = {"rows": [row("kept", [1, 1, 1]), row("gone", [1, 1, 1]), row("kept", [5, 5, 5], ranks=4)]}
        done = self.run_bench(before, {"rows": [row("kept", [1, 1, 1])]})
        self.assertEqual(done.returncode, 0)
        self.assertIn("not measured this time: gone at 2, kept at 4", done.stdout)

    def test_results_of_the_first_version_are_a_plain_list(self):
        old = [{key: value for key, value in row("plain", [1, 1, 1]).items() if "samples" not in key and key != "ours"}]
        self.assertEqual(self.run_bench(old, old).returncode, 0)

    def test_what_cannot_be_compared_is_refused(self):
        for content, said in [("{", "Expecting"), ('{"rows": 3}', "not a result of scripts/bench"), ('[{"a": 1}]', "not a result of scripts/bench")]:
            done = self.run_bench(content, {"rows": []})
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)
        self.assertEqual(self.run_bench({"rows": []}, {"rows": []}).returncode, 1)  # nothing was compared


class Table(unittest.TestCase):
    def test_has_ratio_goal_and_share_of_the_limit(self):
        facts = {"cpu": "a CPU", "vectors": "AVX2", "cores": 2, "memory_gib": 8, "date": "2026-11-22", "commit": "abc"}
        text = results.markdown(facts, [row("fast", [1, 1, 1], limit="dgemm", limit_s=0.8), row("slow", [2, 2, 2])])
        self.assertIn("a CPU, AVX2, 2 cores, 8 GiB; 2026-11-22, commit abc", text)
        self.assertIn("| fast | 2 | 1 s | a peer | 2 s | 2.00 | 1.50 | 0.80 of dgemm |", text)
        self.assertIn("| slow | 2 | 2 s | a peer | 2 s | **1.00** | 1.50 |  |", text)

    def test_units(self):
        self.assertEqual([results.seconds_text(s) for s in (1.5, 0.0125, 3e-6, 2e-8)], ["1.5 s", "12.5 ms", "3 µs", "0.02 µs"])


class Order(unittest.TestCase):
    def test_the_first_come_first_and_every_row_once(self):
        names = {1: ["other", "linalg_solve_f64_4096"], 2: ["other", "product_ranking_x", "linalg_solve_f64_4096", "jit_call_of_10_ops_x1000"]}
        rows = order.queue(names)
        self.assertEqual(rows[0], order.Row("jit_call_of_10_ops_x1000", 2))
        self.assertEqual(rows.count(order.Row("linalg_solve_f64_4096", 2)), 1)
        self.assertIn(order.Row("linalg_solve_f64_4096", 2, True), rows)
        self.assertEqual({row.name for row in rows[-2:]}, {"other"})
        self.assertNotIn("product_ranking_x", {row.name for row in rows})
        self.assertEqual({row.ranks for row in order.queue(names, [2])}, {2})


class Peers(unittest.TestCase):
    def start(self, output):
        def start(ranks, words, folder=None):
            self.started = [ranks, *map(str, words)]
            self.settings = pathlib.Path(folder, "HPL.dat").read_text() if folder else ""
            return output

        return start

    def planted(self, kind, program=None):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "somewhere", program or kind.program)
            path.parent.mkdir()
            path.write_text("#!/bin/sh\n")
            path.chmod(0o755)
            return kind(folder)

    def test_a_folder_without_the_program_says_what_to_build(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(ValueError, "no program xhpl below it. Build HPL there first"):
                peers.Hpl(folder)

    def test_cosma(self):
        cosma = self.planted(peers.Cosma)
        start = self.start("Strategy = ...\nCOSMA TIMES [ms] = 113 114 115 348 \n")
        self.assertEqual(cosma.samples("product_f64_2048_row_block", 2, start), [0.113, 0.114, 0.115])
        self.assertEqual(self.started[2:8], ["-m", "2048", "-n", "2048", "-k", "2048"])
        cosma.samples("product_217x217x43417_row", 2, start)
        self.assertEqual(self.started[2:8], ["-m", "217", "-n", "217", "-k", "43417"])
        self.assertIsNone(cosma.samples("product_memory_f64_4096_row_row", 2, start))
        self.assertIsNone(cosma.samples("chain_of_8_f32_64Mi", 2, start))
        with self.assertRaises(ValueError):
            cosma.samples("product_f64_2048_row_row", 4, self.start("nothing"))

    def test_one_measurement_serves_all_rows_of_a_size(self):
        cosma = self.planted(peers.Cosma)
        cosma.samples("product_f64_2048_row_block", 2, self.start("COSMA TIMES [ms] = 113 114 \n"))
        self.assertEqual(cosma.samples("product_f64_2048_row_row", 2, None), [0.113])

    def test_heffte(self):
        heffte = self.planted(peers.Heffte)
        self.assertEqual(heffte.samples("fft_128^3_float32_natural", 4, self.start("Time per run: 0.0229497 (s)\n")), [0.0229497])
        self.assertTrue(self.started[1].endswith("speed3d_r2c"))
        self.assertEqual(self.started[2:7], ["fftw", "float", "128", "128", "128"])
        self.assertIsNone(heffte.samples("fft_1d_2^24_complex128", 2, None))

    def test_hpl_takes_the_best_of_its_blocks_and_grids(self):
        hpl = self.planted(peers.Hpl)
        output = "WR10C2R4        4096   128     1     2               0.70              6.5e+01\nWR10C2R4        4096   192     1     2               0.63              7.3e+01\n"
        self.assertEqual(hpl.samples("linalg_solve_f64_4096", 2, self.start(output)), [0.63])
        lines = self.settings.splitlines()
        self.assertEqual(lines[4:12], ["3", "4096 4096 4096", "3", "128 192 256", "0", "1", "1", "2"])
        self.assertIsNone(hpl.samples("linalg_solve_f64_10000x16x16", 2, None))


unittest.main()
