#include "api/failures.hpp"

#include <tessera/runtime.hpp>

#include <algorithm>
#include <sstream>
#include <unordered_map>

#include "comm/watch/agreement.hpp"

namespace tessera {
namespace {

// Encodes failures as "number kind length text", concatenated.
std::string failures_text(const std::vector<Array>& values) {
  std::ostringstream text;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (const auto& failure = failure_of(values[i]))
      text << i << " " << static_cast<char>(failure->kind) << " " << failure->text.size() << " "
           << failure->text << " ";
  return text.str();
}

void adopt(const std::string& text, const std::vector<Array>& values) {
  std::istringstream stream(text);
  std::size_t i = 0, length = 0;
  for (char kind = 0; stream >> i >> kind >> length;) {
    std::string words(length, '\0');
    stream.get();
    stream.read(words.data(), static_cast<std::streamsize>(length));
    auto& stored = mutable_output_of(values.at(i)).stored;
    if (stored && !stored->failure)
      stored->failure = std::make_shared<const FailedValue>(
          FailedValue{static_cast<FailedValue::Kind>(kind), std::move(words)});
  }
}

using Failures = std::unordered_map<const Node*, FailurePtr>;

FailurePtr failure_among(const std::vector<Array>& inputs, const Failures& failures) {
  for (const auto& x : inputs) {
    if (const auto& failure = failure_of(x)) return failure;
    if (const auto found = failures.find(x.node().get()); found != failures.end()) return found->second;
  }
  return nullptr;
}

// Gives no value to roots that depend on failed leaves or nodes; computes the other roots.
void fail_dependents(const Graph& graph, Failures failures) {
  for (const auto& node : graph.nodes)
    if (auto failure = failure_among(node->inputs, failures)) failures.emplace(node.get(), failure);
  std::vector<Array> failed, others;
  for (const auto& root : graph.roots) {
    const auto found = failures.find(root.node().get());
    if (found == failures.end()) {
      others.push_back(root);
      continue;
    }
    auto& output = mutable_output_of(root);
    output.stored = Stored{.layout = output.sharding ? *output.sharding : replicated_everywhere(),
                           .buffer = {},
                           .failure = found->second};
    failed.push_back(root);
  }
  release_inputs(failed);
  if (others.empty()) return;
  try {
    evaluate(others);
  } catch (const LinAlgError&) {  // stored with the values; only the first error is raised
  } catch (const NanError&) {
  } catch (const MemoryError&) {}
}

}  // namespace

void release_inputs(const std::vector<Array>& roots) {
  for (const auto& root : roots) {
    auto& node = *root.node();
    if (!node.traced) drop_inputs(node);
  }
}

FailurePtr share_failures(const std::vector<int>& ids, const std::vector<Array>& values) {
  if (waits_for_others(ids))
    for (const auto& text : comm::gather_texts(comm::group(ids), failures_text(values))) adopt(text, values);
  const auto first =
      std::find_if(values.begin(), values.end(), [](const Array& x) { return failure_of(x) != nullptr; });
  return failure_of(*first);
}

void go_on_without_failed(const Graph& graph, const std::vector<Array>& operands,
                          const std::vector<int>& ids) {
  const auto first = share_failures(ids, operands);
  fail_dependents(graph, {});
  raise(*first);
}

std::unique_ptr<Executable> when_refused(const Graph& graph, const std::vector<Array>& roots,
                                         const std::vector<int>& ids,
                                         const std::function<std::unique_ptr<Executable>()>& make) {
  try {
    return make();
  } catch (const MemoryError&) {
    const bool by_a_part = ids.size() < static_cast<std::size_t>(process_count()) &&
                           std::find(ids.begin(), ids.end(), process_index()) != ids.end();
    if (!by_a_part || ids.size() == 0) throw;
    const auto failure = caught_failure();
    Failures failures;
    for (const auto& root : roots) failures.emplace(root.node().get(), failure);
    fail_dependents(graph, std::move(failures));
    throw;
  }
}

}  // namespace tessera
