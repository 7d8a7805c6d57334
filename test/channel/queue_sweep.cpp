// Cancel at step k, for every k and in many orders: no item is lost, doubled or out of order.
#include "channel/operation.hpp"
#include "kit/chaos_executor.hpp"
#include "kit/seed.hpp"

#include <turnstile/channel/priority_queue.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>

namespace {

using namespace channels;

constexpr std::size_t pushes = 6;
constexpr std::size_t pops = 6;

// Pushes and pops in a shuffled world; two of the operations are cancelled after k steps.
template <class Queue, class Push>
class shuffled_run {
public:
    shuffled_run(std::uint64_t seed, std::size_t capacity, overflow policy, Push push)
        : chaos_(seed), queue_(chaos_.get_executor(), capacity, policy), push_(push)
    {
        for (std::size_t i = 0; i != pushes; ++i)
            asio::post(chaos_.get_executor(),
                       [this, i] { push_(queue_, order_[i] = next_++, ops_[i]); });
        for (std::size_t i = pushes; i != pushes + pops; ++i)
            asio::post(chaos_.get_executor(), [this, i] {
                if (i % 3 == 0)
                    queue_.async_pop_n(2, ops_[i].popped_some());
                else
                    queue_.async_pop(ops_[i].popped());
            });
        for (auto& v : victims_)
            v = chaos_.pick(ops_.size());
    }

    bool cancel_after(std::size_t k)
    {
        for (std::size_t step = 0; step != k; ++step) {
            if (!chaos_.run_one())
                return false;
        }
        for (std::size_t v : victims_)
            ops_[v].cancel();
        chaos_.run();
        return true;
    }

    // Every item that was pushed with success is in exactly one place, and no other is.
    void check()
    {
        numbers found;
        for (std::size_t i = pushes; i != pushes + pops; ++i) {
            numbers& values = ops_[i].values;
            BOOST_TEST((ops_[i].succeeded() || values.empty()));
            BOOST_TEST(std::is_sorted(values.begin(), values.end()));
            found.insert(found.end(), values.begin(), values.end());
        }
        const numbers rest = drain(queue_);
        chaos_.run(); // those who had waited to push
        BOOST_TEST(std::is_sorted(rest.begin(), rest.end()), "out of order");
        found.insert(found.end(), rest.begin(), rest.end());
        std::sort(found.begin(), found.end());
        numbers entered;
        for (std::size_t i = 0; i != pushes; ++i) {
            BOOST_TEST((!ops_[i].done || ops_[i].succeeded() || ops_[i].aborted()));
            if (ops_[i].succeeded())
                entered.push_back(order_[i]);
        }
        std::sort(entered.begin(), entered.end());
        if (queue_.dropped() == 0)
            BOOST_TEST(found == entered, boost::test_tools::per_element());
        else
            BOOST_TEST(std::includes(entered.begin(), entered.end(), found.begin(), found.end()));
        BOOST_TEST(found.size() + queue_.dropped() == entered.size());
        BOOST_TEST(queue_.unfinished() == found.size());
        for (std::size_t i = 0; i != found.size(); ++i)
            queue_.task_done();
        BOOST_TEST(queue_.unfinished() == 0U);
    }

private:
    std::array<operation, pushes + pops> ops_;
    std::array<int, pushes> order_{};
    std::array<std::size_t, 2> victims_{};
    int next_ = 0;
    kit::chaos_context chaos_;
    Queue queue_;
    Push push_;
};

template <class Queue, class Push>
void sweep(overflow policy, Push push)
{
    for (const std::size_t capacity : {0U, 1U, 3U, 100U}) {
        kit::for_each_seed(60, [&](std::uint64_t seed) {
            bool reached = true;
            for (std::size_t k = 0; reached; ++k) {
                BOOST_TEST_REQUIRE(k < 1000U);
                shuffled_run<Queue, Push> run(seed, capacity, policy, push);
                reached = run.cancel_after(k);
                run.check();
            }
        });
    }
}

BOOST_AUTO_TEST_SUITE(queue_sweep)

BOOST_AUTO_TEST_CASE(cancelling_pushes_and_pops_of_a_queue)
{
    using queue = turnstile::queue<int>;
    const auto push = [](queue& q, int value, operation& op) { q.async_push(value, op.ended()); };
    sweep<queue>(overflow::wait, push);
    sweep<queue>(overflow::drop_oldest, push);
    sweep<queue>(overflow::drop_newest, push);
}

BOOST_AUTO_TEST_CASE(cancelling_pushes_and_pops_of_a_priority_queue)
{
    using queue = turnstile::local::priority_queue<int>;
    const auto push = [](queue& q, int value, operation& op) {
        q.async_push(value, value, op.pushed());
    };
    sweep<queue>(overflow::wait, push);
    sweep<queue>(overflow::drop_worst, push);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
