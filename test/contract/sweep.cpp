// Cancel at step k, for every k, in every order a seed can think of.
#include "contract/subjects.hpp"
#include "kit/chaos_executor.hpp"
#include "kit/seed.hpp"

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <vector>

namespace {

using namespace contract;
using kit::completion;

struct victim {
    completion result;
    asio::cancellation_signal signal;
};

// Five operations, and grants for all of them, in a shuffled world.
template <class S>
class shuffled_run {
public:
    explicit shuffled_run(std::uint64_t seed)
        : chaos_(seed), subject_(chaos_.get_executor()), chosen_(chaos_.pick(ops_.size()))
    {
        for (victim& op : ops_) {
            asio::post(chaos_.get_executor(), [this, &op] {
                start(subject_, op.result, [&](auto h) {
                    return asio::bind_cancellation_slot(op.signal.slot(), std::move(h));
                });
            });
            asio::post(chaos_.get_executor(), [this] { grant_one(); });
        }
    }

    // Cancels one of the operations after k steps; whether the run lasted that long.
    bool cancel_after(std::size_t k)
    {
        for (std::size_t step = 0; step != k; ++step) {
            if (!chaos_.run_one())
                return false;
        }
        ops_[chosen_].signal.emit(asio::cancellation_type::total);
        chaos_.run();
        return true;
    }

    void check_nothing_is_lost_or_doubled()
    {
        if constexpr (S::is_broadcast)
            BOOST_TEST(subject_.available() == 1U);
        else
            BOOST_TEST(grants_ == successes() + subject_.available());
        for (victim& op : ops_) {
            // There was a grant for each, so nobody is left behind.
            BOOST_TEST(op.result.done());
            if (&op != &ops_[chosen_])
                BOOST_TEST(!op.result.aborted());
        }
    }

private:
    std::size_t successes() const
    {
        std::size_t n = 0;
        for (const victim& op : ops_)
            n += op.result.succeeded() ? 1 : 0;
        return n;
    }

    bool all_done() const
    {
        return std::all_of(ops_.begin(), ops_.end(),
                           [](const victim& op) { return op.result.done(); });
    }

    void grant_one()
    {
        // No more than can be stored may be out at a time: try again after the others, unless
        // nobody is left to use it.
        if (!S::is_broadcast && grants_ - successes() == S::capacity) {
            if (!all_done())
                asio::post(chaos_.get_executor(), [this] { grant_one(); });
            return;
        }
        ++grants_;
        subject_.grant();
    }

    std::vector<victim> ops_{5};
    kit::chaos_context chaos_;
    S subject_;
    std::size_t chosen_;
    std::size_t grants_ = 0;
};

BOOST_AUTO_TEST_SUITE(sweep)

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_at_any_step_loses_and_doubles_nothing, S, subjects)
{
    kit::for_each_seed(200, [](std::uint64_t seed) {
        bool reached = true;
        for (std::size_t k = 0; reached; ++k) {
            BOOST_TEST_REQUIRE(k < 1000U);
            shuffled_run<S> run(seed);
            reached = run.cancel_after(k);
            run.check_nothing_is_lost_or_doubled();
        }
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
