// SPDX-License-Identifier: BSL-1.0
// The coroutine frames that a thread keeps for the next call of the same coroutine.
#include "kit/run.hpp"

#include <turnstile/detail/util/frame_cache.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>

namespace {

namespace asio = boost::asio;
namespace detail = turnstile::detail;

constexpr bool keeps_frames = TURNSTILE_KEEPS_FRAMES;

// Takes the place of Asio's promise, from which the slot allocates, and with which it frees the
// frames that it does not keep.
template <class Test>
struct promise {
    static void* operator new(std::size_t size)
    {
        void* const p = ::operator new(size);
        in_use.insert(p);
        return p;
    }
    static void operator delete(void* p, std::size_t) noexcept
    {
        in_use.erase(p);
        ::operator delete(p);
    }
    static inline std::set<void*> in_use;
};

BOOST_AUTO_TEST_SUITE(frame_cache)

BOOST_AUTO_TEST_CASE(a_freed_frame_is_used_for_the_next_call)
{
    using memory = detail::frame_cache<promise<struct next_one>>;
    void* const first = memory::take(100);
    memory::put(first, 100);
    void* const second = memory::take(100);
    BOOST_TEST((second == first) == keeps_frames);
    memory::put(second, 100);
}

BOOST_AUTO_TEST_CASE(a_thread_keeps_one_frame_and_frees_it_when_the_thread_ends)
{
    using from = promise<struct keeps_one>;
    using memory = detail::frame_cache<from>;
    std::size_t kept = 0;
    std::thread([&] {
        void* const a = memory::take(100);
        void* const b = memory::take(100);
        BOOST_TEST(a != b);
        memory::put(a, 100);
        memory::put(b, 100);
        kept = from::in_use.size();
    }).join();
    BOOST_TEST(kept == (keeps_frames ? 1U : 0U));
    BOOST_TEST(from::in_use.empty());
}

BOOST_AUTO_TEST_CASE(a_large_frame_is_not_kept)
{
    using from = promise<struct large>;
    using memory = detail::frame_cache<from>;
    void* const frame = memory::take(2000);
    memory::put(frame, 2000);
    BOOST_TEST(from::in_use.empty());
}

// Frames of the same coroutine differ in size if parts of a program are optimised differently.
BOOST_AUTO_TEST_CASE(a_kept_frame_is_not_used_for_another_size)
{
    using from = promise<struct another_size>;
    using memory = detail::frame_cache<from>;
    void* const small = memory::take(100);
    memory::put(small, 100);
    void* const large = memory::take(200);
    BOOST_TEST(large != small);
    memory::put(large, 200);
    BOOST_TEST(from::in_use.count(large) == 0U);
    void* const again = memory::take(100);
    BOOST_TEST((again == small) == keeps_frames);
    memory::put(again, 100);
}

BOOST_AUTO_TEST_CASE(a_frame_may_be_freed_on_another_thread)
{
    using from = promise<struct another_thread>;
    using memory = detail::frame_cache<from>;
    void* const frame = memory::take(100);
    std::thread([&] { memory::put(frame, 100); }).join();
    BOOST_TEST(from::in_use.empty());
}

// Asio's promise has no operator new if the recycling of frames is disabled.
struct promise_without_memory {};

BOOST_AUTO_TEST_CASE(a_promise_without_operator_new_uses_the_heap)
{
    using memory = detail::frame_cache<promise_without_memory>;
    void* const a = memory::take(100);
    void* const b = memory::take(100);
    BOOST_TEST(a != b);
    memory::put(a, 100);
    memory::put(b, 100);
}

// Constructed before the thread keeps a frame, and so destroyed after the cache.
template <class Memory>
struct frees_frame_late {
    ~frees_frame_late() { Memory::put(frame, 100); }
    void* frame;
};

BOOST_AUTO_TEST_CASE(a_frame_that_is_freed_after_the_cache_goes_to_the_heap)
{
    using from = promise<struct late>;
    using memory = detail::frame_cache<from>;
    std::thread([&] {
        static thread_local const frees_frame_late<memory> late{memory::take(100)};
        BOOST_TEST(late.frame != nullptr);
        void* const other = memory::take(100);
        memory::put(other, 100);
    }).join();
    BOOST_TEST(from::in_use.empty());
}

asio::awaitable<std::unique_ptr<int>> value(detail::cached_frame, int n)
{
    if (n < 0)
        throw std::out_of_range("negative");
    co_await asio::post(asio::deferred);
    co_return std::make_unique<int>(n);
}

BOOST_AUTO_TEST_CASE(a_coroutine_with_a_cached_frame_behaves_like_any_awaitable)
{
    asio::io_context io;
    int sum = 0;
    int thrown = 0;
    asio::co_spawn(
        io,
        [&]() -> asio::awaitable<void> {
            for (int i = 0; i != 10; ++i)
                sum += *co_await value({}, i);
            try {
                co_await value({}, -1);
            } catch (const std::out_of_range&) {
                ++thrown;
            }
            {
                [[maybe_unused]] const auto never_awaited = value({}, 1);
            }
            sum += *co_await value({}, 100);
        },
        asio::detached);
    kit::run(io);
    BOOST_TEST(sum == 145);
    BOOST_TEST(thrown == 1);
}

BOOST_AUTO_TEST_CASE(a_coroutine_with_a_cached_frame_may_be_destroyed_with_its_context)
{
    bool went_on = false;
    {
        asio::io_context io;
        asio::co_spawn(
            io,
            [&]() -> asio::awaitable<void> {
                co_await value({}, 1);
                went_on = true;
            },
            asio::detached);
        io.poll_one();
    }
    BOOST_TEST(!went_on);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
