#include "kernels/fft.hpp"

#include <fftw3.h>

#include <tessera/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string>
#include <unordered_map>

#include "base/settings.hpp"
#include "kernels/fft_wisdom.hpp"
#include "kernels/threads.hpp"
#include "types/box.hpp"
#include "types/buffer.hpp"

namespace tessera::kernels {
namespace {

// FFTW's two precisions under one set of names.
template <class R> struct Fftw;
#define TESSERA_FFTW(R, prefix)                                                                                          \
  template <> struct Fftw<R> {                                                                                           \
    using Plan = prefix##plan;                                                                                           \
    using Complex = prefix##complex;                                                                                     \
    using Loop = prefix##iodim64;                                                                                        \
    static Plan c2c(int rank, const Loop* dims, int loops, const Loop* batch, R* in, R* out, int sign, unsigned flags) { \
      return prefix##plan_guru64_dft(rank, dims, loops, batch, (Complex*)in, (Complex*)out, sign, flags);                \
    }                                                                                                                    \
    static Plan r2c(int rank, const Loop* dims, int loops, const Loop* batch, R* in, R* out, unsigned flags) {           \
      return prefix##plan_guru64_dft_r2c(rank, dims, loops, batch, in, (Complex*)out, flags);                            \
    }                                                                                                                    \
    static Plan c2r(int rank, const Loop* dims, int loops, const Loop* batch, R* in, R* out, unsigned flags) {           \
      return prefix##plan_guru64_dft_c2r(rank, dims, loops, batch, (Complex*)in, out, flags);                            \
    }                                                                                                                    \
    static void run_c2c(Plan plan, R* in, R* out) { prefix##execute_dft(plan, (Complex*)in, (Complex*)out); }            \
    static void run_r2c(Plan plan, R* in, R* out) { prefix##execute_dft_r2c(plan, in, (Complex*)out); }                  \
    static void run_c2r(Plan plan, R* in, R* out) { prefix##execute_dft_c2r(plan, (Complex*)in, out); }                  \
    static void destroy(Plan plan) { prefix##destroy_plan(plan); }                                                       \
    static int alignment(const void* p) { return prefix##alignment_of((R*)p); }                                          \
    static void set_time_limit(double seconds) { prefix##set_timelimit(seconds); }                                       \
    static void set_threads(int count) {                                                                                 \
      static const bool ready = prefix##init_threads() != 0;                                                             \
      if (ready) prefix##plan_with_nthreads(count);                                                                      \
    }                                                                                                                    \
  };
TESSERA_FFTW(double, fftw_)
TESSERA_FFTW(float, fftwf_)
#undef TESSERA_FFTW

// A plan may take as long to find as it takes to run some dozen times.
constexpr double runs_per_plan = 40, least_seconds_per_plan = 0.01, most_seconds_per_plan = 3.0;

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

FftPlanCounts& plan_counts() {
  static FftPlanCounts counts;
  return counts;
}

bool& keeps_wisdom() {
  static bool keeps = false;
  return keeps;
}

// FFTW's planner is not re-entrant.
std::mutex& planner() {
  static std::mutex instance;
  return instance;
}

using PlanKey = std::vector<std::int64_t>;
struct PlanKeyHash {
  std::size_t operator()(const PlanKey& key) const {
    std::uint64_t hash = key.size();
    for (const auto part : key) hash = (hash ^ static_cast<std::uint64_t>(part)) * 0x9e3779b97f4a7c15ull, hash ^= hash >> 29;
    return hash;
  }
};

struct Job {
  FftKind kind;
  FftSign sign;
  std::vector<FftLoop> points, batch;
  bool in_place = false;
};

// Elements from the first to the last that a side of the job touches.
std::int64_t span_of(const Job& job, bool of_input) {
  std::int64_t span = 1;
  for (std::size_t i = 0; i < job.points.size(); ++i) {
    const bool halved = i + 1 == job.points.size() && ((job.kind == FftKind::r2c && !of_input) || (job.kind == FftKind::c2r && of_input));
    const auto n = halved ? job.points[i].n / 2 + 1 : job.points[i].n;
    span += (n - 1) * std::abs(of_input ? job.points[i].in_stride : job.points[i].out_stride);
  }
  for (const auto& loop : job.batch) span += (loop.n - 1) * std::abs(of_input ? loop.in_stride : loop.out_stride);
  return span;
}

template <class R> class Plans {
 public:
  using Api = Fftw<R>;
  using Plan = typename Api::Plan;

  static Plans& instance() {
    static auto* plans = new Plans;  // FFTW may be gone before the last static is destroyed
    return *plans;
  }

  void run(const Job& job, void* src, void* dst) {
    Entry& entry = find(job, src, dst);
    const Plan plan = entry.plan;
    const double start_s = entry.seconds == 0 ? now_s() : 0;
    R *in = static_cast<R*>(src), *out = static_cast<R*>(dst);
    if (job.kind == FftKind::c2c)
      Api::run_c2c(plan, in, out);
    else if (job.kind == FftKind::r2c)
      Api::run_r2c(plan, in, out);
    else
      Api::run_c2r(plan, in, out);
    if (entry.seconds == 0) entry.seconds = now_s() - start_s;
  }

 private:
  struct Entry {
    Plan plan = nullptr;
    bool is_measured = false;
    double seconds = 0;  // of the first run
  };
  static constexpr std::size_t most_plans = 1024;

  Entry& find(const Job& job, void* src, void* dst) {
    const int align_in = Api::alignment(src), align_out = Api::alignment(dst);
    PlanKey key = {
        static_cast<std::int64_t>(job.kind),         static_cast<std::int64_t>(job.sign), job.in_place, align_in, align_out, threads(),
        static_cast<std::int64_t>(job.points.size())};
    for (const auto* loops : {&job.points, &job.batch})
      for (const auto& loop : *loops) key.insert(key.end(), {loop.n, loop.in_stride, loop.out_stride});
    const std::lock_guard lock(planner());
    auto& counts = plan_counts();
    const auto found = entries_.find(key);
    const auto& how = settings().fft_plan;
    const bool measure = how == "measure" || (how == "auto" && found != entries_.end());
    if (found != entries_.end() && (found->second.is_measured || !measure)) {
      ++counts.reused;
      return found->second;
    }
    if (found == entries_.end() && entries_.size() >= most_plans) clear();
    auto& entry = entries_[key];
    Api::set_threads(threads());
    if (measure) {
      Wisdom<R>::load();
      Api::set_time_limit(how == "measure" ? most_seconds_per_plan
                                           : std::clamp(runs_per_plan * entry.seconds, least_seconds_per_plan, most_seconds_per_plan));
      if (const Plan better = make(job, align_in, align_out, dst, FFTW_MEASURE)) {
        if (entry.plan) Api::destroy(entry.plan);
        entry.plan = better;
        ++counts.measured;
        save_at_exit();
      }
      entry.is_measured = true;
    }
    if (entry.plan == nullptr) entry.plan = make(job, align_in, align_out, dst, FFTW_ESTIMATE);
    if (entry.plan == nullptr) throw InternalError("fft: FFTW has no plan for this transform");
    ++counts.made;
    return entry;
  }

  static void save_at_exit() {
    if (!keeps_wisdom()) return;
    static const int registered = std::atexit(&Wisdom<R>::save);
    (void)registered;
  }

  // Measuring overwrites both sides: the destination may be overwritten anyway, a scratch block stands for the source.
  Plan make(const Job& job, int align_in, int align_out, void* dst, unsigned effort) {
    const bool measures = effort == FFTW_MEASURE;
    const auto side_bytes = [&](bool of_input) {
      const bool is_real = of_input ? job.kind == FftKind::r2c : job.kind == FftKind::c2r;
      return static_cast<std::size_t>(span_of(job, of_input)) * sizeof(R) * (is_real ? 1 : 2) + 64;
    };
    Buffer scratch_in, scratch_out;
    std::byte *in = nullptr, *out = static_cast<std::byte*>(dst);
    if (job.in_place) {  // the data are the source: both sides from scratch
      scratch_in = Buffer::allocate(measures ? side_bytes(true) : 64);
      in = out = scratch_in.data() + align_in;
    } else {
      scratch_in = Buffer::allocate(measures ? side_bytes(true) : 64);
      in = scratch_in.data() + align_in;
      if (!measures) scratch_out = Buffer::allocate(64), out = scratch_out.data() + align_out;
    }
    unsigned flags = effort;
    if (job.kind == FftKind::c2r) flags |= FFTW_PRESERVE_INPUT;
    const auto loops_of = [](const std::vector<FftLoop>& loops) {
      std::vector<typename Api::Loop> result;
      for (const auto& l : loops)
        result.push_back(
            {static_cast<std::ptrdiff_t>(l.n), static_cast<std::ptrdiff_t>(l.in_stride), static_cast<std::ptrdiff_t>(l.out_stride)});
      return result;
    };
    const auto points = loops_of(job.points), batch = loops_of(job.batch);
    const int rank = static_cast<int>(points.size()), n_batch = static_cast<int>(batch.size());
    R *r_in = reinterpret_cast<R*>(in), *r_out = reinterpret_cast<R*>(out);
    if (job.kind == FftKind::r2c) return Api::r2c(rank, points.data(), n_batch, batch.data(), r_in, r_out, flags);
    if (job.kind == FftKind::c2r) return Api::c2r(rank, points.data(), n_batch, batch.data(), r_in, r_out, flags);
    return Api::c2c(rank, points.data(), n_batch, batch.data(), r_in, r_out, job.sign == FftSign::forward ? FFTW_FORWARD : FFTW_BACKWARD,
                    flags);
  }

  void clear() {
    for (auto& [key, entry] : entries_)
      if (entry.plan) Api::destroy(entry.plan);
    entries_.clear();
  }

  std::unordered_map<PlanKey, Entry, PlanKeyHash> entries_;
};

// Neighbouring batch loops that run through memory like one become one: fewer plans, shorter inner loops.
std::vector<FftLoop> merged(std::vector<FftLoop> loops) {
  std::erase_if(loops, [](const FftLoop& l) { return l.n == 1; });
  for (std::size_t i = loops.size(); i-- > 1;) {
    auto &outer = loops[i - 1], &inner = loops[i];
    if (outer.in_stride != inner.n * inner.in_stride || outer.out_stride != inner.n * inner.out_stride) continue;
    inner.n *= outer.n;
    loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(i) - 1);
  }
  return loops;
}

template <class R> void scale_all(R* data, std::int64_t n, double scale) {
  const R factor = static_cast<R>(scale);
  for (std::int64_t i = 0; i < n; ++i) data[i] *= factor;
}

}  // namespace

void scale_reals(Dtype complex, void* data, std::int64_t reals, double scale) {
  if (scale == 1) return;
  if (complex == complex64)
    scale_all(static_cast<float*>(data), reals, scale);
  else
    scale_all(static_cast<double*>(data), reals, scale);
}

void fft(Dtype complex, FftKind kind, FftSign sign, std::span<const FftLoop> points, std::span<const FftLoop> batch, const void* src,
         void* dst) {
  Job job{kind, sign, {points.begin(), points.end()}, merged({batch.begin(), batch.end()}), src == dst};
  if (kind == FftKind::c2c) std::erase_if(job.points, [](const FftLoop& l) { return l.n == 1; });
  void* source = const_cast<void*>(src);  // FFTW's signatures; every plan here preserves its input
  complex == complex64 ? Plans<float>::instance().run(job, source, dst) : Plans<double>::instance().run(job, source, dst);
}

void fft_dense(Dtype complex, FftKind kind, FftSign sign, std::span<const int> dims, const Shape& in, const Shape& out, const void* src,
               void* dst, double scale) {
  if (in.elements() == 0 || out.elements() == 0) return;
  const auto in_strides = row_major_strides(in), out_strides = row_major_strides(out);
  const Shape& real_side = kind == FftKind::c2r ? out : in;
  const auto loop_of = [&](int d) {
    const auto i = static_cast<std::size_t>(d);
    return FftLoop{real_side[i], in_strides[i], out_strides[i]};
  };
  std::vector<FftLoop> points, batch;
  for (const int d : dims) points.push_back(loop_of(d));
  for (int d = 0; d < in.ndim(); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) batch.push_back(loop_of(d));
  if (kind == FftKind::c2r && dims.size() > 1) {
    // FFTW's own n-d c2r overwrites its input: the complex dims first, into a block of our own.
    const Buffer halved = Buffer::allocate(static_cast<std::size_t>(in.elements()) * itemsize(complex));
    fft_dense(complex, FftKind::c2c, sign, dims.first(dims.size() - 1), in, in, src, halved.data(), 1);
    return fft_dense(complex, kind, sign, dims.last(1), in, out, halved.data(), dst, scale);
  }
  fft(complex, kind, sign, points, batch, src, dst);
  scale_reals(complex, dst, out.elements() * (kind == FftKind::c2r ? 1 : 2), scale);
}

void keep_fft_wisdom(bool keep) { keeps_wisdom() = keep; }

FftPlanCounts fft_plan_counts() {
  const std::lock_guard lock(planner());
  return plan_counts();
}

}  // namespace tessera::kernels
