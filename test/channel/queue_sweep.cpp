// SPDX-License-Identifier: BSL-1.0
// Cancel at step k, for every k and in many orders: no item is lost, doubled or out of order.
#include "channel/operation.hpp"
#include "kit/chaos_executor.hpp"
#include "kit/policies.hpp"
#include "kit/seed.hpp"

#include <turnstile/channel/priority_queue.hpp>

#include <boost/asio.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

namespace {

using namespace channels;

constexpr std::size_t pushes = 6;
constexpr std::size_t pops = 6;
constexpr std::size_t join = pushes + pops;
constexpr std::size_t operations = join + 1;
constexpr int first_placed = 1000; // the first value that fills a reservation

struct settings {
    std::size_t capacity;
    overflow policy;
    queue_order next;
    std::optional<close_mode> ending;
};

// The differences between the queues.
template <class Threading>
struct plain {
    using queue = queue_of<Threading>;
    static constexpr bool in_order_of_pushing = true;

    static queue make(kit::chaos_context& chaos, const settings& s)
    {
        return queue(chaos.get_executor(), s.capacity, s.policy, s.next);
    }
    static void push(queue& q, int value, operation& op) { q.async_push(value, op.ended()); }
    static void fill(typename queue::reservation_type& place, int value, error_code& ec)
    {
        place.push(std::move(value), ec);
    }
};

template <class Threading>
struct with_priorities {
    using queue =
        turnstile::basic_priority_queue<int, int, std::less<int>, asio::any_io_executor, Threading>;
    static constexpr bool in_order_of_pushing = false;

    static queue make(kit::chaos_context& chaos, const settings& s)
    {
        return queue(chaos.get_executor(), s.capacity, s.policy);
    }
    static void push(queue& q, int value, operation& op)
    {
        q.async_push(value, value, op.pushed());
    }
    static void fill(typename queue::reservation_type& place, int value, error_code& ec)
    {
        place.push(std::move(value), value, ec);
    }
};

// Pushes, reservations, pops and a join on a chaos_executor, sometimes with a close. Two of the
// operations are cancelled after k steps.
template <class Flavour>
class shuffled_run {
public:
    shuffled_run(std::uint64_t seed, const settings& s)
        : settings_(s), chaos_(seed), queue_(Flavour::make(chaos_, s))
    {
        for (std::size_t i = 0; i != operations; ++i)
            asio::post(chaos_.get_executor(), [this, i] { start(i); });
        if (s.ending)
            asio::post(chaos_.get_executor(), [this] { queue_.close(*settings_.ending); });
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

    void check()
    {
        check_batches();
        if (settings_.ending) {
            for (const auto& op : ops_)
                BOOST_TEST((op.done || &op == &ops_[join]), "hangs after close");
        }
        for (;;) {
            const numbers rest = drain(queue_);
            popped_.insert(popped_.end(), rest.begin(), rest.end());
            chaos_.run(); // the pushes and reservations that waited
            if (queue_.empty())
                break;
        }
        check_order();
        check_numbers();
        for (std::size_t i = 0; i != popped_.size(); ++i)
            queue_.task_done();
        chaos_.run();
        BOOST_TEST(queue_.unfinished() == 0U);
        BOOST_TEST((ops_[join].succeeded() || ops_[join].aborted()));
    }

private:
    void start(std::size_t i)
    {
        if (i == join)
            queue_.async_join(ops_[i].ended());
        else if (i >= pushes)
            start_pop(i);
        else if (i % 3 == 2)
            start_reserve(i);
        else
            Flavour::push(queue_, value_[i] = next_++, ops_[i]);
    }
    void start_reserve(std::size_t i)
    {
        queue_.async_reserve(asio::bind_cancellation_slot(
            ops_[i].signal.slot(), [this, i](error_code ec, auto place) {
                if (!ec)
                    Flavour::fill(place, value_[i] = next_placed_++, ec);
                ops_[i].done = true;
                ops_[i].error = ec;
            }));
    }
    void start_pop(std::size_t i)
    {
        if (i % 3 == 0)
            queue_.async_pop_n(2, note_batch(i));
        else
            queue_.async_pop(note_item(i));
    }
    auto note_batch(std::size_t i)
    {
        return asio::bind_cancellation_slot(
            ops_[i].signal.slot(), [this, i](error_code ec, const numbers& values) {
                ops_[i].done = true;
                ops_[i].error = ec;
                ops_[i].values = values;
                popped_.insert(popped_.end(), values.begin(), values.end());
            });
    }
    auto note_item(std::size_t i)
    {
        return asio::bind_cancellation_slot(ops_[i].signal.slot(),
                                            [this, i](error_code ec, int value) {
                                                ops_[i].done = true;
                                                ops_[i].error = ec;
                                                if (!ec)
                                                    popped_.push_back(value);
                                            });
    }

    // Pushed values and filled values are each in order.
    static bool in_order_of_entering(const numbers& values)
    {
        numbers pushed;
        numbers placed;
        std::partition_copy(values.begin(), values.end(), std::back_inserter(placed),
                            std::back_inserter(pushed), [](int v) { return v >= first_placed; });
        return std::is_sorted(pushed.begin(), pushed.end()) &&
               std::is_sorted(placed.begin(), placed.end());
    }

    // The values of one batch are in order.
    void check_batches()
    {
        for (auto& op : ops_) {
            numbers& batch = op.values;
            BOOST_TEST((op.succeeded() || batch.empty()));
            if (settings_.next == queue_order::lifo)
                std::reverse(batch.begin(), batch.end());
            if (Flavour::in_order_of_pushing)
                BOOST_TEST(in_order_of_entering(batch), "out of order");
            else
                BOOST_TEST(std::is_sorted(batch.begin(), batch.end()), "out of order");
        }
    }

    // So are the values of successive pops.
    void check_order()
    {
        if (Flavour::in_order_of_pushing && settings_.next == queue_order::fifo)
            BOOST_TEST(in_order_of_entering(popped_), "out of order");
    }

    // Every item whose push succeeded is in exactly one place; no other item exists.
    void check_numbers()
    {
        numbers entered;
        for (std::size_t i = 0; i != pushes; ++i) {
            const bool may_be_closed = settings_.ending && ops_[i].failed_with(errc::closed);
            BOOST_TEST(
                (!ops_[i].done || ops_[i].succeeded() || ops_[i].aborted() || may_be_closed));
            if (ops_[i].succeeded())
                entered.push_back(value_[i]);
        }
        numbers found = popped_;
        std::sort(found.begin(), found.end());
        std::sort(entered.begin(), entered.end());
        BOOST_TEST((std::adjacent_find(found.begin(), found.end()) == found.end()), "doubled");
        BOOST_TEST(std::includes(entered.begin(), entered.end(), found.begin(), found.end()));
        if (settings_.ending != close_mode::discard)
            BOOST_TEST(found.size() + queue_.dropped() == entered.size());
        BOOST_TEST(queue_.unfinished() == found.size());
    }

    std::array<operation, operations> ops_;
    std::array<int, pushes> value_{};
    std::array<std::size_t, 2> victims_{};
    numbers popped_; // in the order in which the handlers ran
    int next_ = 0;
    int next_placed_ = first_placed;
    settings settings_;
    kit::chaos_context chaos_;
    typename Flavour::queue queue_;
};

// Each seed determines an order and an ending.
template <class Flavour>
void sweep(overflow policy)
{
    constexpr std::array<std::optional<close_mode>, 4> endings{
        std::nullopt, std::nullopt, close_mode::drain, close_mode::discard};
    for (const std::size_t capacity : {0U, 1U, 3U, 100U}) {
        kit::for_each_seed(200, [&](std::uint64_t seed) {
            const bool lifo = Flavour::in_order_of_pushing && seed / 4 % 3 == 0;
            const settings s{capacity, policy, lifo ? queue_order::lifo : queue_order::fifo,
                             endings[seed % 4]};
            bool reached = true;
            for (std::size_t k = 0; reached; ++k) {
                BOOST_TEST_REQUIRE(k < 1000U);
                shuffled_run<Flavour> run(seed, s);
                reached = run.cancel_after(k);
                run.check();
            }
        });
    }
}

BOOST_AUTO_TEST_SUITE(queue_sweep)

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_operations_of_a_queue, Threading, kit::policies)
{
    for (const auto policy : {overflow::wait, overflow::drop_oldest, overflow::drop_newest})
        sweep<plain<Threading>>(policy);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancelling_operations_of_a_priority_queue, Threading, kit::policies)
{
    for (const auto policy : {overflow::wait, overflow::drop_worst})
        sweep<with_priorities<Threading>>(policy);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
