// SPDX-License-Identifier: BSL-1.0
// Cancels an operation at step k, for every k, in the random order of each seed.
#include "contract/subject.hpp"
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
    bool started = false;
    std::size_t place = 0;    // in the order of the starts
    bool was_waiting = false; // at a grant that completes all waits
};

// Five operations, and a grant for each, on a context that runs functions in random order.
class shuffled_run {
public:
    shuffled_run(const kind& kind, std::uint64_t seed)
        : kind_(kind), ops_(kind.up_to(5)), chaos_(seed),
          subject_(kind.make(chaos_.get_executor())), chosen_(chaos_.pick(ops_.size()))
    {
        for (victim& op : ops_) {
            asio::post(chaos_.get_executor(), [this, &op] {
                op.started = true;
                op.place = starts_++;
                subject_->start(operation(op.result).with(op.signal.slot()));
            });
            asio::post(chaos_.get_executor(), [this] { grant_one(); });
        }
    }

    // Cancels one of the operations after k steps. Returns false if the run ended before.
    bool cancel_after(std::size_t k)
    {
        for (std::size_t step = 0; step != k; ++step) {
            if (!chaos_.run_one())
                return false;
        }
        ops_[chosen_].signal.emit(asio::cancellation_type::total);
        cancelled_ = true;
        chaos_.run();
        return true;
    }

    void check_nothing_is_lost_or_doubled()
    {
        if (kind_.stays_granted)
            BOOST_TEST(subject_->available() == 1U);
        else if (kind_.is_broadcast || !kind_.keeps_grants)
            check_grants_that_pass_by();
        else
            BOOST_TEST_REQUIRE(grants_ == successes() + subject_->available());
        for (victim& op : ops_) {
            // There was a grant for each operation, so all have completed.
            BOOST_TEST_REQUIRE(op.result.done());
            if (&op != &ops_[chosen_])
                BOOST_TEST(!op.result.aborted());
        }
    }

    void check_order_is_kept()
    {
        std::vector<const victim*> served;
        for (const victim& op : ops_) {
            if (op.result.succeeded())
                served.push_back(&op);
        }
        std::sort(served.begin(), served.end(),
                  [](const victim* a, const victim* b) { return a->place < b->place; });
        for (std::size_t i = 1; i < served.size(); ++i)
            BOOST_TEST(served[i - 1]->result.before(served[i]->result),
                       "an operation was overtaken");
    }

private:
    std::size_t successes() const
    {
        return count([](const victim& op) { return op.result.succeeded(); });
    }
    std::size_t done() const
    {
        return count([](const victim& op) { return op.result.done(); });
    }
    template <class Predicate>
    std::size_t count(Predicate p) const
    {
        return static_cast<std::size_t>(std::count_if(ops_.begin(), ops_.end(), p));
    }

    bool is_waiting(const victim& op) const
    {
        const bool was_cancelled = cancelled_ && &op == &ops_[chosen_];
        return op.started && !op.result.done() && !was_cancelled;
    }

    // For grants that are not stored: a grant must have reached the operations that waited for it.
    // Only the grant of the cancelled operation may be lost, if no other operation waited.
    void check_grants_that_pass_by()
    {
        for (const victim& op : ops_)
            BOOST_TEST((op.result.done() || !op.was_waiting));
        BOOST_TEST(successes() + (ops_[chosen_].result.aborted() ? 1U : 0U) >= received_);
        if (!kind_.is_broadcast)
            BOOST_TEST(successes() <= grants_);

        // An operation started after the last grant waits for another one.
        while (done() != ops_.size()) {
            const std::size_t expected = kind_.is_broadcast ? ops_.size() : done() + 1;
            subject_->grant();
            chaos_.run();
            BOOST_TEST_REQUIRE(done() == expected);
        }
    }

    void grant_one()
    {
        // No more grants than can be stored may exist at a time: try again after the other
        // functions, unless all operations have completed.
        if (kind_.keeps_grants && !kind_.is_broadcast && grants_ - successes() == kind_.capacity) {
            if (done() != ops_.size() &&
                ++retries_ < 1000) // the bound matters only if a grant is lost
                asio::post(chaos_.get_executor(), [this] { grant_one(); });
            return;
        }
        ++grants_;
        if (kind_.is_broadcast) {
            for (victim& op : ops_)
                op.was_waiting |= is_waiting(op);
        } else if (count([this](const victim& op) { return is_waiting(op); }) + successes() >
                   received_) { // an operation waits that has no grant yet
            ++received_;
        }
        subject_->grant();
    }

    const kind& kind_;
    std::vector<victim> ops_;
    kit::chaos_context chaos_;
    subject_ptr subject_;
    std::size_t chosen_;
    std::size_t starts_ = 0;
    std::size_t grants_ = 0;
    int retries_ = 0;
    std::size_t received_ = 0; // grants that an operation waited for
    bool cancelled_ = false;
};

BOOST_AUTO_TEST_SUITE(sweep)

CONTRACT(cancelling_at_any_step_loses_and_doubles_nothing)
{
    kit::for_each_seed(200, [&](std::uint64_t seed) {
        bool reached = true;
        for (std::size_t k = 0; reached; ++k) {
            BOOST_TEST_REQUIRE(k < 1000U);
            shuffled_run run(kind, seed);
            reached = run.cancel_after(k);
            run.check_nothing_is_lost_or_doubled();
            if (kind.order_is_strict)
                run.check_order_is_kept();
        }
    });
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
