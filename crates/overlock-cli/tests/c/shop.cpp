// Two member functions acquire two mutexes in different orders.
#include <mutex>

namespace shop {
std::mutex cart, stock;

struct Order {
	__attribute__((noinline)) void place(int rounds)
	{
		std::lock_guard<std::mutex> first(cart);
		std::lock_guard<std::mutex> second(stock);
		if (rounds > 0)
			place_again = rounds;
	}
	__attribute__((noinline)) void cancel()
	{
		std::lock_guard<std::mutex> first(stock);
		std::lock_guard<std::mutex> second(cart);
		place_again = 0;
	}
	int place_again = 0;
};
}

int main()
{
	shop::Order order;
	order.place(1);
	order.cancel();
}
