#include "stream/passes.hpp"

#include <tessera/device.hpp>
#include <tessera/ops.hpp>

#include <algorithm>

#include "ops/build.hpp"
#include "stream/file_source.hpp"

namespace tessera::stream {
namespace {

class Walk {
 public:
  Walk(const Streamed& program, const std::vector<Wanted>& wanted, Walker& walker)
      : program_(program), wanted_(wanted), walker_(walker), wholes_(program.roles), kept_(wanted.size()) {
    for (const auto& [id, value] : program.known)
      if (program_.roles.of.contains(id.first)) wholes_.set(id, value);
    for (const auto& node : program_.graph.nodes)
      if (program_.roles.of.at(node.get()).kind == Role::partial)
        for (std::size_t i = 0; i < node->outputs.size(); ++i)
          partials_.emplace_back(node, static_cast<int>(i));
  }

  std::vector<Array> run() {
    for (int pass = 0; pass < program_.roles.passes; ++pass) one_pass(pass);
    std::vector<Array> results(wanted_.size());
    for (std::size_t i = 0; i < results.size(); ++i)
      if (!is_slab(wanted_[i].value)) results[i] = wholes_.of(wanted_[i].value);
    wholes_.compute_all([&](const auto& roots) { return walker_.compute(roots); });
    for (std::size_t i = 0; i < results.size(); ++i)
      results[i] = is_slab(wanted_[i].value) ? joined(i) : wholes_.of(wanted_[i].value);
    return results;
  }

 private:
  bool is_slab(const Array& x) const { return program_.roles.role(x).kind == Role::slab; }
  int dim_of(const Array& x) const { return program_.dims.dim_in(program_.roles.dim_class, x); }
  // The dim of x that ranks share where that is not the streamed one; -1: none.
  int shared_dim(const Array& x) const {
    return program_.split_class < 0 ? -1 : program_.dims.dim_in(program_.split_class, x);
  }

  // The values of one pass: parts to combine, and slabs to store or keep.
  struct Pass {
    std::vector<Array> partials;
    std::vector<std::size_t> results;  // numbers of wanted values
  };
  Pass pass_of(int number) const {
    Pass pass;
    for (const auto& x : partials_)
      if (program_.roles.role(x).pass == number) pass.partials.push_back(x);
    for (std::size_t i = 0; i < wanted_.size(); ++i)
      if (is_slab(wanted_[i].value) && program_.roles.role(wanted_[i].value).pass == number)
        pass.results.push_back(i);
    return pass;
  }

  std::vector<Array> record_slab(const Pass& pass, std::int64_t length, const SlabRecorder::Cut& cut) {
    SlabRecorder recorder(program_.roles, program_.dims, wholes_, length, cut, carries_);
    std::vector<Array> roots, results;
    for (const auto& x : pass.partials)
      roots.push_back(stays_apart(x, length) ? recorder.parts_of_ranks(x) : shared(x, recorder.part_of(x)));
    for (const auto i : pass.results) {
      Array slab = recorder.of(wanted_[i].value);
      if (const NodePtr& sort = wanted_[i].sorted)
        slab = cast_to(record_again(*sort, sort->params, {slab})[0], sort->outputs[0].type.dtype);
      results.push_back(std::move(slab));
    }
    running_.clear();
    for (const auto& [node, last] : recorder.new_carries()) running_.push_back(node), roots.push_back(last);
    roots.insert(roots.end(), results.begin(), results.end());
    return roots;
  }

  void one_pass(int number) {
    const Pass pass = pass_of(number);
    if (pass.partials.empty() && pass.results.empty()) return;
    std::vector<CutValue> cut;
    carries_.clear();
    // Recorded once without values, to learn what the pass reads.
    record_slab(pass, std::min(program_.length, program_.extent), [&](const Array& x, int dim) {
      const int other = shared_dim(x);
      cut.push_back({x, dim, other >= 0 ? other : dim});
      return placeholder_of_part(cut.back(), std::min(program_.length, program_.extent));
    });
    wholes_.compute_all([&](const auto& roots) { return walker_.compute(roots); });
    walker_.begin_pass(cut);
    std::vector<Array> sums;
    for (const Range& slab : walker_.slabs(program_.extent, program_.length)) one_slab(pass, slab, sums);
    set_partials(pass, sums);
  }
  // Slabs of which each rank has as many indices, as all but the last one have.
  bool stays_apart(const Array& x, std::int64_t length) const {
    const auto ranks = static_cast<std::int64_t>(device_count());
    return program_.split_class < 0 && has_parts_of_ranks(x) && length % ranks == 0 &&
           std::min(program_.length, program_.extent) % ranks == 0;
  }
  // A large value in the layout in which ranks share it, so that none holds all of it.
  Array shared(const Array& x, const Array& part) const {
    const int dim = has_parts_of_ranks(x) ? shared_dim(x) : -1;
    return dim < 0 ? part : device_put(part, slab_layout(x.ndim(), dim));
  }
  static Array combined_by_ranks(const Array& x, const Array& parts) {
    return parts.ndim() > x.ndim() ? combined_along_first(parts_combine_by(*x.node()), parts) : parts;
  }
  void set_partials(const Pass& pass, std::vector<Array>& sums) {
    std::vector<Array> wholes;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const Array& x = pass.partials[i];
      if (sums[i].ndim() == x.ndim()) {
        wholes_.set(id_of(x), sums[i]);
        continue;
      }
      wholes.push_back(combined_by_ranks(x, sums[i])), places.push_back(i);
    }
    sums.clear();
    if (wholes.empty()) return;
    const auto values = walker_.compute(wholes);
    for (std::size_t i = 0; i < places.size(); ++i) wholes_.set(id_of(pass.partials[places[i]]), values[i]);
  }

  void one_slab(const Pass& pass, const Range& slab, std::vector<Array>& sums) {
    auto leaves = walker_.leaves(slab);
    std::size_t next = 0;
    auto roots = record_slab(pass, slab.size(), [&](const Array&, int) { return std::move(leaves[next++]); });
    leaves.clear();
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const Array& x = pass.partials[i];
      const bool is_last_alone = roots[i].ndim() < sums[i].ndim();
      roots[i] = combined(parts_combine_by(*x.node()),
                          is_last_alone ? combined_by_ranks(x, sums[i]) : sums[i], roots[i]);
    }
    sums.clear();
    carries_.clear();
    auto values = walker_.compute_slab(roots, pass.results, slab);
    roots.clear();
    const auto partials = static_cast<std::ptrdiff_t>(pass.partials.size());
    for (std::size_t i = 0; i < running_.size(); ++i)
      carries_[running_[i]] = values[pass.partials.size() + i];
    const auto first = pass.partials.size() + running_.size();
    for (std::size_t i = 0; i < pass.results.size(); ++i)
      if (!wanted_[pass.results[i]].is_stored) kept_[pass.results[i]].push_back(std::move(values[first + i]));
    sums.assign(values.begin(), values.begin() + partials);
  }

  Array joined(std::size_t i) {
    if (wanted_[i].is_stored) return {};
    auto parts = std::move(kept_[i]);
    if (parts.size() == 1) return parts[0];
    return walker_.compute({concatenate(parts, dim_of(wanted_[i].value))})[0];
  }

  const Streamed& program_;
  const std::vector<Wanted>& wanted_;
  Walker& walker_;
  WholeValues wholes_;
  std::vector<Array> partials_;
  std::vector<const Node*> running_;  // running sums of the slab that was recorded last
  SlabRecorder::Carries carries_;
  std::vector<std::vector<Array>> kept_;  // slabs of each wanted value
};

}  // namespace

std::vector<Array> walk(const Streamed& program, const std::vector<Wanted>& wanted, Walker& walker) {
  return Walk(program, wanted, walker).run();
}

Sharding slab_layout(int ndim, int dim) {
  const Mesh mesh = make_mesh({device_count()}, {"ranks"});
  std::vector<std::vector<int>> axes(static_cast<std::size_t>(ndim));
  axes[static_cast<std::size_t>(dim)] = {0};
  return Sharding::from_dim_axes(mesh, axes);
}

Array placeholder_of_part(const CutValue& cut, std::int64_t length) {
  Type type = type_of(cut.of);
  type.shape[static_cast<std::size_t>(cut.dim)] = length;
  const auto layout = is_file(*cut.of.node()) ? std::optional(slab_layout(cut.of.ndim(), cut.split))
                                              : output_of(cut.of).sharding;
  return make_placeholder(std::move(type), layout, nullptr, 0);
}

}  // namespace tessera::stream
