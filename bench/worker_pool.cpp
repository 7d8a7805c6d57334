// SPDX-License-Identifier: BSL-1.0
// Jobs on 8 workers, beside a co_spawn for each job with a semaphore, and beside a channel with
// workers by hand; on 1 and 2 threads.
#include "support/enroll.hpp"
#include "support/pools.hpp"

namespace bench {
namespace {

template <class Pool>
void enroll_pool(const std::string& competitor, int threads)
{
    const std::string on = threads == 1 ? "/" : "_2_threads/";
    enroll(
        "job" + on + competitor,
        [threads](meter& m) { return submit_jobs<Pool>(m, 200'000, threads, false); }, threads);
    enroll(
        "job_yields" + on + competitor,
        [threads](meter& m) { return submit_jobs<Pool>(m, 200'000, threads, true); }, threads);
}

[[maybe_unused]] const bool enrolled = [] {
    namespace experimental = asio::experimental;
    enroll_pool<worker_pool_jobs<turnstile::worker_pool<counting_job>>>("ours", 1);
    enroll_pool<worker_pool_jobs<turnstile::worker_pool<counting_job>>>("ours", 2);
    enroll_pool<worker_pool_jobs<turnstile::local::worker_pool<counting_job>>>("local", 1);
    enroll_pool<spawned_jobs>("by_hand", 1);
    enroll_pool<spawned_jobs>("by_hand", 2);
    enroll_pool<channel_jobs<experimental::channel<void(boost::system::error_code, counting_job)>>>(
        "channel", 1);
    enroll_pool<channel_jobs<
        experimental::concurrent_channel<void(boost::system::error_code, counting_job)>>>(
        "concurrent_channel", 1);
    enroll_pool<channel_jobs<
        experimental::concurrent_channel<void(boost::system::error_code, counting_job)>>>(
        "concurrent_channel", 2);
    return true;
}();

} // namespace
} // namespace bench
