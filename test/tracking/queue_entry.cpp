// SPDX-License-Identifier: BSL-1.0
// Asio's queue entries are larger with handler tracking. They still fit into the memory of an
// intrusive_task, so that a wake-up does not allocate. Returns the number of failed checks.
#include <turnstile/detail/post/tasks.hpp>

#include <boost/asio.hpp>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

int allocations = 0;

} // namespace

void* operator new(std::size_t size)
{
    ++allocations;
    if (void* p = std::malloc(size))
        return p;
    throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace {

namespace asio = boost::asio;

// As large as the functions that the library posts.
struct function {
    void* what;
    void operator()() const {}
};

template <std::size_t Size, class Executor>
int allocations_of_post(const Executor& executor)
{
    // Static, because it must outlive the queue entry.
    alignas(std::max_align_t) static std::byte room[Size];
    const turnstile::detail::buffer_allocator<void, Size> memory(room);
    const auto queueing =
        asio::prefer(asio::require(executor, asio::execution::blocking.never),
                     asio::execution::relationship.fork, asio::execution::allocator(memory));
    const int before = allocations;
    queueing.execute(function{nullptr});
    return allocations - before;
}

} // namespace

int main()
{
    constexpr std::size_t enough = turnstile::detail::intrusive_task::memory_size;
    asio::io_context io;
    asio::thread_pool pool(1);
    pool.join(); // so that no function runs during the count
    const int in_io = allocations_of_post<enough>(io.get_executor());
    const int in_pool = allocations_of_post<enough>(pool.get_executor());
    const int in_less =
        allocations_of_post<16>(io.get_executor()); // must allocate: the check can fail
    std::printf("io_context: %d, thread_pool: %d, too small: %d\n", in_io, in_pool, in_less);
    io.run();
    return in_io + in_pool + (in_less == 1 ? 0 : 1);
}
