#include "kernels/fourier/fft_plans.hpp"

#include <fftw3.h>

#include <tessera/error.hpp>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "base/hash.hpp"
#include "base/recent.hpp"
#include "base/settings.hpp"
#include "kernels/fourier/fft_wisdom.hpp"
#include "types/buffer.hpp"

namespace tessera::kernels {
namespace {

// FFTW's two precisions under one set of names.
template <class R> struct Fftw;
#define TESSERA_FFTW(R, prefix)                                                                           \
  template <> struct Fftw<R> {                                                                            \
    using Plan = prefix##plan;                                                                            \
    using Complex = prefix##complex;                                                                      \
    using Loop = prefix##iodim64;                                                                         \
    static Plan c2c(int rank, const Loop* dims, int loops, const Loop* batch, R* in, R* out, int sign,    \
                    unsigned flags) {                                                                     \
      return prefix##plan_guru64_dft(rank, dims, loops, batch, (Complex*)in, (Complex*)out, sign, flags); \
    }                                                                                                     \
    static Plan r2c(int rank, const Loop* dims, int loops, const Loop* batch, R* in, R* out,              \
                    unsigned flags) {                                                                     \
      return prefix##plan_guru64_dft_r2c(rank, dims, loops, batch, in, (Complex*)out, flags);             \
    }                                                                                                     \
    static Plan c2r(int rank, const Loop* dims, int loops, const Loop* batch, R* in, R* out,              \
                    unsigned flags) {                                                                     \
      return prefix##plan_guru64_dft_c2r(rank, dims, loops, batch, (Complex*)in, out, flags);             \
    }                                                                                                     \
    static void run_c2c(Plan plan, R* in, R* out) {                                                       \
      prefix##execute_dft(plan, (Complex*)in, (Complex*)out);                                             \
    }                                                                                                     \
    static void run_r2c(Plan plan, R* in, R* out) { prefix##execute_dft_r2c(plan, in, (Complex*)out); }   \
    static void run_c2r(Plan plan, R* in, R* out) { prefix##execute_dft_c2r(plan, (Complex*)in, out); }   \
    static void destroy(Plan plan) { prefix##destroy_plan(plan); }                                        \
    static int alignment(const void* p) { return prefix##alignment_of((R*)p); }                           \
    static void set_time_limit(double seconds) { prefix##set_timelimit(seconds); }                        \
    static char* learnt() { return prefix##export_wisdom_to_string(); }                                   \
    static void forget() { prefix##forget_wisdom(); }                                                     \
    static void learn(const char* wisdom) { prefix##import_wisdom_from_string(wisdom); }                  \
  };
TESSERA_FFTW(double, fftw_)
TESSERA_FFTW(float, fftwf_)
#undef TESSERA_FFTW

constexpr double most_seconds_per_plan = 1.0;
constexpr std::int64_t many_repeats = 12;  // in one call: measure at the first call

bool& keeps_wisdom() {
  static bool keeps = false;
  return keeps;
}

// FFTW's planner is not re-entrant, and this includes destroying a plan. Plans are destroyed when they are
// replaced, inside the planner.
std::recursive_mutex& planner() {
  static std::recursive_mutex instance;
  return instance;
}

using PlanKey = std::vector<std::int64_t>;
struct PlanKeyHash {
  std::size_t operator()(const PlanKey& key) const { return mix_range(0, key); }
};

// The number of elements from the first to the last that one side of the job touches.
std::int64_t span_of(const FftJob& job, bool of_input) {
  std::int64_t span = 1;
  for (std::size_t i = 0; i < job.points.size(); ++i) {
    const bool halved = i + 1 == job.points.size() &&
                        ((job.kind == FftKind::r2c && !of_input) || (job.kind == FftKind::c2r && of_input));
    const auto n = halved ? job.points[i].n / 2 + 1 : job.points[i].n;
    span += (n - 1) * std::abs(of_input ? job.points[i].in_stride : job.points[i].out_stride);
  }
  for (const auto& loop : job.batch)
    span += (loop.n - 1) * std::abs(of_input ? loop.in_stride : loop.out_stride);
  return span;
}

// Hides wisdom while it lives: an estimated plan would use measurements of its shape, whatever their origin.
template <class R> class WithoutWisdom {
 public:
  WithoutWisdom() : wisdom_(Fftw<R>::learnt(), &std::free) { Fftw<R>::forget(); }
  ~WithoutWisdom() {
    Fftw<R>::forget();
    if (wisdom_ != nullptr) Fftw<R>::learn(wisdom_.get());
  }
  WithoutWisdom(const WithoutWisdom&) = delete;
  WithoutWisdom& operator=(const WithoutWisdom&) = delete;

 private:
  std::unique_ptr<char, decltype(&std::free)> wisdom_;
};

template <class R> class Plans {
 public:
  using Api = Fftw<R>;
  using Plan = typename Api::Plan;

  static Plans& instance() {
    static auto* plans = new Plans;  // never destroyed: FFTW's statics may be destroyed first
    return *plans;
  }

  void run(const FftJob& job, void* src, void* dst, std::int64_t repeats) {
    const SharedPlan kept = find(job, src, dst, repeats);
    const Plan plan = kept.get();
    R *in = static_cast<R*>(src), *out = static_cast<R*>(dst);
    if (job.kind == FftKind::c2c)
      Api::run_c2c(plan, in, out);
    else if (job.kind == FftKind::r2c)
      Api::run_r2c(plan, in, out);
    else
      Api::run_c2r(plan, in, out);
  }

 private:
  // Plans are shared, because another thread may run one while it is replaced or forgotten.
  using SharedPlan = std::shared_ptr<std::remove_pointer_t<Plan>>;
  struct Entry {
    SharedPlan plan;
    bool is_measured = false;
  };
  static constexpr std::size_t most_plans = 1024;

  static SharedPlan share(Plan plan) {
    return {plan, [](Plan last) {
              const std::lock_guard lock(planner());
              if (last != nullptr) Api::destroy(last);
            }};
  }

  SharedPlan find(const FftJob& job, void* src, void* dst, std::int64_t repeats) {
    const int align_in = Api::alignment(src), align_out = Api::alignment(dst);
    PlanKey key = {static_cast<std::int64_t>(job.kind),
                   static_cast<std::int64_t>(job.sign),
                   src == dst,
                   align_in,
                   align_out,
                   static_cast<std::int64_t>(job.planning),
                   static_cast<std::int64_t>(job.points.size())};
    for (const auto* loops : {&job.points, &job.batch})
      for (const auto& loop : *loops) key.insert(key.end(), {loop.n, loop.in_stride, loop.out_stride});
    const std::lock_guard lock(planner());
    Entry* const known = entries_.find(key);
    const bool is_known = known != nullptr;
    const auto& how = settings().fft_plan;
    const bool alike = job.planning == FftPlanning::alike;
    const bool measure =
        !alike && (how == "measure" || (how == "auto" && (is_known || repeats >= many_repeats)));
    if (is_known && (known->is_measured || !measure)) return known->plan;
    Entry& entry = is_known ? *known : entries_.insert(key, {});
    if (measure) {
      Wisdom<R>::load();
      Api::set_time_limit(most_seconds_per_plan);
      if (const Plan better = make(job, src == dst, align_in, align_out, dst, FFTW_MEASURE))
        entry.plan = share(better);
      Api::set_time_limit(FFTW_NO_TIMELIMIT);  // reset, because the application may use the planner too
      entry.is_measured = true;
      save_at_exit();
    }
    if (entry.plan == nullptr) {
      const auto unlearnt = alike ? std::make_unique<WithoutWisdom<R>>() : nullptr;
      entry.plan = share(make(job, src == dst, align_in, align_out, dst, FFTW_ESTIMATE));
    }
    if (entry.plan == nullptr) throw InternalError("fft: FFTW has no plan for this transform");
    return entry.plan;
  }

  static void save_at_exit() {
    if (!keeps_wisdom()) return;
    static const int registered = std::atexit(&Wisdom<R>::save);
    (void)registered;
  }

  // Measuring overwrites both sides: the destination may be overwritten anyway, a scratch block replaces the
  // source.
  static Plan make(const FftJob& job, bool in_place, int align_in, int align_out, void* dst,
                   unsigned effort) {
    const bool measures = effort == FFTW_MEASURE;
    const bool real_source = job.kind == FftKind::r2c;
    const auto source_bytes = (span_of(job, true)) * sizeof(R) * (real_source ? 1 : 2) + 64;
    Buffer source = Buffer::allocate(measures ? source_bytes : 64), destination;
    std::byte *in = source.data() + align_in, *out = static_cast<std::byte*>(dst);
    if (in_place) out = in;
    if (!in_place && !measures) destination = Buffer::allocate(64), out = destination.data() + align_out;
    unsigned flags = effort;
    if (job.kind == FftKind::c2r) flags |= FFTW_PRESERVE_INPUT;
    const auto loops_of = [](const std::vector<FftLoop>& loops) {
      std::vector<typename Api::Loop> result;
      for (const auto& l : loops)
        result.push_back({static_cast<std::ptrdiff_t>(l.n), static_cast<std::ptrdiff_t>(l.in_stride),
                          static_cast<std::ptrdiff_t>(l.out_stride)});
      return result;
    };
    const auto points = loops_of(job.points), batch = loops_of(job.batch);
    const int rank = static_cast<int>(points.size()), n_batch = static_cast<int>(batch.size());
    R *r_in = reinterpret_cast<R*>(in), *r_out = reinterpret_cast<R*>(out);
    if (job.kind == FftKind::r2c)
      return Api::r2c(rank, points.data(), n_batch, batch.data(), r_in, r_out, flags);
    if (job.kind == FftKind::c2r)
      return Api::c2r(rank, points.data(), n_batch, batch.data(), r_in, r_out, flags);
    return Api::c2c(rank, points.data(), n_batch, batch.data(), r_in, r_out,
                    job.sign == FftSign::forward ? FFTW_FORWARD : FFTW_BACKWARD, flags);
  }

  RecentMap<PlanKey, Entry, PlanKeyHash> entries_{most_plans};
};

}  // namespace

void run_fft_plan(Dtype complex, const FftJob& job, void* src, void* dst, std::int64_t repeats) {
  complex == complex64 ? Plans<float>::instance().run(job, src, dst, repeats)
                       : Plans<double>::instance().run(job, src, dst, repeats);
}

void keep_fft_wisdom(bool keep) { keeps_wisdom() = keep; }

}  // namespace tessera::kernels
