#include "stream/passes.hpp"

#include <tessera/device.hpp>
#include <tessera/ops.hpp>

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <span>

#include "ops/build.hpp"
#include "ops/contract/dot_general.hpp"
#include "stream/file_source.hpp"
#include "stream/tree_of_slabs.hpp"

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
  // The dim of x that ranks share where that is not the streamed one; -1: none, as of complete values that
  // were recorded for this walk.
  int shared_dim(const Array& x) const {
    return program_.split_class < 0 || !program_.dims.knows(x)
               ? -1
               : program_.dims.dim_in(program_.split_class, x);
  }

  // The values of one pass: parts to combine, and slabs to store or keep.
  struct Pass {
    std::vector<Array> partials;
    std::vector<const CentredSum*> centred;  // of those that are sums of squared distances, in their order
    std::vector<std::size_t> results;        // numbers of wanted values
    // The values that are summed up: partial ones, then distances from the shifts.
    std::size_t count() const { return partials.size() + centred.size(); }
    const Array& summed(std::size_t i) const {
      return i < partials.size() ? partials[i] : centred[i - partials.size()]->total;
    }
  };
  Pass pass_of(int number) const {
    Pass pass;
    for (const auto& x : partials_)
      if (program_.roles.role(x).pass == number) {
        pass.partials.push_back(x);
        if (const CentredSum* centred = centred_of(x)) pass.centred.push_back(centred);
      }
    for (std::size_t i = 0; i < wanted_.size(); ++i)
      if (is_slab(wanted_[i].value) && program_.roles.role(wanted_[i].value).pass == number)
        pass.results.push_back(i);
    return pass;
  }

  // `sums`: of the slabs before; empty in the first.
  std::vector<Array> record_slab(const Pass& pass, std::int64_t length, const SlabRecorder::Cut& cut,
                                 const std::vector<Array>& sums) {
    SlabRecorder recorder(program_.roles, program_.dims, wholes_, length, cut, carries_);
    std::vector<Array> roots, results;
    std::vector<Array> distances, shifts;
    for (const auto& x : pass.partials) {
      if (length_in_order(*x.node()) > 0) {
        auto parts = recorder.parts_in_order(x);
        if (!sums.empty()) parts.insert(parts.begin(), sums[roots.size()]);
        roots.push_back(std::accumulate(parts.begin() + 1, parts.end(), parts[0], std::plus<>()));
        continue;
      }
      const bool is_apart = stays_apart(x, length);
      if (const CentredSum* centred = centred_of(x)) {
        shifts.push_back(shift_of(pass, *centred, roots, length));
        recorder.set(centred->mean, shifts.back());
        distances.push_back(distances_of(*centred, recorder, is_apart));
      }
      roots.push_back(is_apart ? recorder.parts_of_ranks(x) : shared(x, recorder.part_of(x)));
    }
    for (auto* more : {&distances, &shifts}) roots.insert(roots.end(), more->begin(), more->end());
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
    record_slab(pass, std::min(program_.length, program_.extent),
                [&](const Array& x, int dim) {
                  const int other = shared_dim(x);
                  cut.push_back({x, dim, other >= 0 ? other : dim});
                  return placeholder_of_part(cut.back(), std::min(program_.length, program_.extent));
                },
                {});
    wholes_.compute_all([&](const auto& roots) { return walker_.compute(roots); });
    walker_.begin_pass(cut);
    std::vector<Array> sums;
    for (const Range& slab : walker_.slabs(program_.extent, program_.length)) one_slab(pass, slab, sums);
    for (auto& [i, tree] : trees_) sums[i] = tree.root(join_of(pass.summed(i)));
    trees_.clear();
    set_partials(pass, sums);
  }
  // Slabs of which each rank has as many indices, as all but the last one have.
  bool stays_apart(const Array& x, std::int64_t length) const {
    const auto ranks = static_cast<std::int64_t>(device_count());
    return program_.roles.keeps_parts_apart && program_.split_class < 0 && has_parts_of_ranks(x) &&
           length % ranks == 0 && std::min(program_.length, program_.extent) % ranks == 0;
  }
  // A large value in the layout in which ranks share it, so that none holds all of it.
  Array shared(const Array& x, const Array& part) const {
    const int dim = has_parts_of_ranks(x) ? shared_dim(x) : -1;
    return dim < 0 ? part : device_put(part, slab_layout(x.ndim(), dim));
  }

  // The values of a sum of squared distances from the mean; nullptr for other values.
  const CentredSum* centred_of(const Array& x) const {
    const auto found = program_.roles.centred.find(x.node().get());
    return found == program_.roles.centred.end() ? nullptr : &found->second;
  }
  // The number that slabs subtract: the mean of the first one.
  Array shift_of(const Pass& pass, const CentredSum& centred, const std::vector<Array>& roots,
                 std::int64_t length) const {
    if (const auto known = shifts_.find(id_of(centred.mean)); known != shifts_.end()) return known->second;
    const auto at = std::find_if(pass.partials.begin(), pass.partials.end(),
                                 [&](const Array& x) { return id_of(x) == id_of(centred.total); });
    const Array total =
        combined_by_ranks(centred.total, roots[static_cast<std::size_t>(at - pass.partials.begin())]);
    return reshape(total / count_of(centred, length), centred.mean.shape());
  }
  // The elements that the total sums up in `length` indices of the streamed dim.
  double count_of(const CentredSum& centred, std::int64_t length) const {
    Shape shape = centred.x.shape();
    shape[static_cast<std::size_t>(dim_of(centred.x))] = length;
    return elements_along(shape, centred.dims);
  }
  // The sum of a slab's distances from the shift; with a first dim of ranks where these keep theirs apart.
  Array distances_of(const CentredSum& centred, SlabRecorder& recorder, bool is_apart) const {
    const Array distances = recorder.of(centred.difference);
    if (!is_apart) return sum(distances, Axes(centred.dims));
    const auto ranks = static_cast<std::int64_t>(device_count());
    const int dim = dim_of(centred.x);
    auto extents = distances.shape().vector();
    extents[static_cast<std::size_t>(dim)] /= ranks;
    extents.insert(extents.begin() + dim, ranks);
    std::vector<int> dims = centred.dims;
    for (int& d : dims) ++d;
    return sum(moveaxis(reshape(distances, Shape(std::move(extents))), dim, 0), Axes(dims));
  }

  static Array combined_by_ranks(const Array& x, const Array& parts) {
    return parts.ndim() > x.ndim() ? combined_along_first(parts_combine_by(*x.node()), parts) : parts;
  }
  void set_partials(const Pass& pass, std::vector<Array>& sums) {
    std::vector<Array> wholes;
    std::vector<ValueId> places;
    std::size_t distances = pass.partials.size();
    for (std::size_t i = 0; i < pass.partials.size() && i < sums.size(); ++i) {
      const Array& x = pass.partials[i];
      const CentredSum* centred = centred_of(x);
      if (centred == nullptr && sums[i].ndim() == x.ndim()) {
        wholes_.set(id_of(x), sums[i]);
        continue;
      }
      Array whole = combined_by_ranks(x, sums[i]);
      if (centred != nullptr)
        whole = squares_about_mean(whole, combined_by_ranks(centred->total, sums[distances++]),
                                   count_of(*centred, program_.extent));
      wholes.push_back(std::move(whole)), places.push_back(id_of(x));
    }
    sums.clear();
    shifts_.clear();
    if (wholes.empty()) return;
    const auto values = walker_.compute(wholes);
    for (std::size_t i = 0; i < places.size(); ++i) wholes_.set(places[i], values[i]);
  }

  void one_slab(const Pass& pass, const Range& slab, std::vector<Array>& sums) {
    auto leaves = walker_.leaves(slab);
    std::size_t next = 0;
    auto roots = record_slab(
        pass, slab.size(), [&](const Array&, int) { return std::move(leaves[next++]); }, sums);
    leaves.clear();
    for (std::size_t i = 0; i < pass.count(); ++i) {
      const Array& x = pass.summed(i);
      if (is_top_k(*x.node())) {
        merge_largest(x, slab.start, std::span(roots).subspan(i, 2),
                      std::span(sums).subspan(std::min(i, sums.size())));
        ++i;
        continue;
      }
      if (sums.empty() || is_tree(*x.node()) || length_in_order(*x.node()) > 0) continue;
      const bool is_last_alone = roots[i].ndim() < sums[i].ndim();
      roots[i] = combined(parts_combine_by(*x.node()),
                          is_last_alone ? combined_by_ranks(x, sums[i]) : sums[i], roots[i]);
    }
    sums.clear();
    carries_.clear();
    auto values = walker_.compute_slab(roots, pass.results, slab);
    roots.clear();
    std::size_t at = pass.count();
    sums.assign(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at));
    for (std::size_t i = 0; i < at; ++i)
      if (is_tree(*pass.summed(i).node())) add_to_tree(i, pass.summed(i), slab, std::move(sums[i]));
    for (const CentredSum* centred : pass.centred) shifts_[id_of(centred->mean)] = values[at++];
    for (const Node* node : running_) carries_[node] = values[at++];
    for (const auto i : pass.results) {
      if (!wanted_[i].is_stored) kept_[i].push_back(std::move(values[at]));
      ++at;
    }
  }

  TreeOfSlabs::Join join_of(const Array& x) {
    return [this, kind = parts_combine_by(*x.node())](const Array& left, const Array& right) {
      return walker_.compute({combined(kind, left, right)})[0];
    };
  }
  void add_to_tree(std::size_t i, const Array& x, const Range& slab, Array node) {
    if (slab.start == 0)  // as many nodes wait as the number of slabs has digits
      walker_.hold(node, std::bit_width(static_cast<std::uint64_t>(program_.extent / slab.size())));
    trees_[i].add(std::move(node), join_of(x));
  }
  // The k largest of those before (none in the first slab) and of the slab's, whose positions count from its
  // start. Equals of earlier slabs come first.
  static void merge_largest(const Array& x, std::int64_t start, std::span<Array> own,
                            std::span<Array> before) {
    own[1] = cast_to(own[1], output_of(Array(x.node(), 1)).type.dtype);
    if (before.empty()) return;
    const int last = x.ndim() - 1;
    const Array from_start = own[1] + astype(array(start), own[1].dtype());
    const auto [values, places] =
        top_k(concatenate({before[0], own[0]}, last), static_cast<int>(x.shape().back()));
    own[1] = take_along_axis(concatenate({before[1], from_start}, last), places, last);
    own[0] = values;
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
  std::map<std::size_t, TreeOfSlabs> trees_;  // of this pass, by the numbers of their sums
  std::map<ValueId, Array> shifts_;           // of this pass, by the means that they stand for
  std::vector<std::vector<Array>> kept_;      // slabs of each wanted value
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
