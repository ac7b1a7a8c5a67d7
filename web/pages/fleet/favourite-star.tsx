// Makes a cluster one of the favourites of this browser, and takes it from them.
import classes from './favourite-star.module.css'
import { favourites } from './kept-views.ts'

export function FavouriteStar({ cluster }: { readonly cluster: string }) {
  const chosen = favourites.use()
  const isChosen = chosen.includes(cluster)
  return (
    <button
      type="button"
      className={classes.star}
      aria-label={`Favourite ${cluster}`}
      aria-pressed={isChosen}
      onClick={() =>
        favourites.set(isChosen ? chosen.filter((other) => other !== cluster) : [...chosen, cluster])
      }
    >
      {isChosen ? '★' : '☆'}
    </button>
  )
}
