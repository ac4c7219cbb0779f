#include "comm/host/links.hpp"

#include "base/session.hpp"

namespace tessera::comm {
namespace {
struct KnownLinks {
  Links all;
};
}  // namespace

void set_links(const Links& all) { state<KnownLinks>().all = all; }
const Links& links() { return state<KnownLinks>().all; }

}  // namespace tessera::comm
